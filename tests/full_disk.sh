#!/bin/sh
# A disk that is full and a folder that is read-only, for real: two small tmpfs, which only root can mount. tests/full_disk.sh OUTLAST
set -eu
outlast=$(realpath "$1")
if [ "$(id -u)" != 0 ]; then
    echo "*** not root: full disks and read-only folders are NOT tested"
    exit 0
fi
folder=$(mktemp -d)
cleanup() {
    umount "$folder/full" 2>/dev/null || true
    umount "$folder/read-only" 2>/dev/null || true
    rm -rf "$folder"
}
trap cleanup EXIT
mkdir "$folder/full" "$folder/read-only"
if ! mount -t tmpfs -o size=64k none "$folder/full"; then
    echo "*** tmpfs can't be mounted here: full disks and read-only folders are NOT tested"
    exit 0
fi
awk 'BEGIN { srand(1); for (i = 0; i < 220000; i++) { for (j = 0; j < 10; j++) printf "%f,", rand() + (i % 2) / 4; print i % 2 } }' >"$folder/data.csv"

# refused WORD COMMAND...: it must end with code 2 and say that word
refused() {
    word=$1
    shift
    code=0
    said=$("$@" 2>&1 >/dev/null) || code=$?
    if [ $code != 2 ] || ! echo "$said" | grep -q "$word"; then
        echo "FAILED ($code): $*: $said"
        exit 1
    fi
    echo "ok: $said" | head -n 1
}

head -n 40 "$folder/data.csv" >"$folder/few.csv"
head -n 3000 "$folder/data.csv" >"$folder/some.csv"
"$outlast" fit "$folder/few.csv" --kernel linear -o "$folder/full/model" >/dev/null
before=$(cksum <"$folder/full/model")
refused "No space left" "$outlast" fit "$folder/some.csv" -C 0.1 -o "$folder/full/model"
refused "No space left" "$outlast" predict "$folder/full/model" "$folder/data.csv" -o "$folder/full/predictions.csv"
refused "No space left" "$outlast" fit "$folder/data.csv" --stream --memory 64MB --kernel linear --cache "$folder/full"
refused "No space left" "$outlast" reproduce rsvm-figure5 --out "$folder/full/results"
[ "$(cksum <"$folder/full/model")" = "$before" ] || { echo "FAILED: the old model has changed"; exit 1; }
left=$(find "$folder/full" -type f ! -name model ! -path '*/results/*')
[ -z "$left" ] || { echo "FAILED: left behind: $left"; exit 1; }

mount -t tmpfs -o size=64k none "$folder/read-only"
cp "$folder/full/model" "$folder/read-only/model"
mount -o remount,ro "$folder/read-only"
refused "Read-only file system" "$outlast" fit "$folder/few.csv" -o "$folder/read-only/model"
refused "Read-only file system" "$outlast" tune "$folder/few.csv" --cv 2 -o "$folder/read-only/new"
refused "Read-only file system" "$outlast" fit "$folder/data.csv" --stream --memory 64MB --kernel linear --cache "$folder/read-only"
[ "$(cksum <"$folder/read-only/model")" = "$before" ] || { echo "FAILED: the old model has changed"; exit 1; }
echo "full disk and read-only folder: every failure named, every old file intact, nothing left behind"
