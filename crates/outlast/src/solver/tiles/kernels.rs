//! The micro-kernels, written once over [`Lanes`] and instantiated per instruction set, map and sink.
//!
//! Every unsafe function here passes on the same promises, which the three public ones make good: the instruction set was detected; a panel
//! has [`PANEL`] offsets and as many values for each column; a block's offsets, coefficients, starts and terms are as long as its
//! slots say, and its entries name columns of the panel ([`pack`](super::pack) builds both so); `out` or `to` has room for what
//! the sink writes.

use super::pack::{Block, Entries, Panel};
use super::prepared::Map;
use super::simd::{LANES, Lanes, Portable};
use super::{GROUP, PANEL};
use crate::linalg::Isa;
use std::ops::Range;

/// out[lane] += sum_j c_j k(panel lane, block row j)
pub(super) fn sum(isa: Isa, map: Map, panel: Panel, block: &Block, out: &mut [f64; PANEL]) {
    // SAFETY: `isa` was detected; a sum writes to `out` only.
    unsafe { dispatch::<SUM>(isa, map, panel, block, 0..block.groups, out.as_mut_ptr(), std::ptr::null_mut(), 0) }
}

/// out[function * 64 + lane] += sum_j c_j,function k(panel lane, block row j) over the rows of some groups, in f32.
pub(super) fn spread(isa: Isa, map: Map, panel: Panel, block: &Block, groups: Range<usize>, out: &mut [f32]) {
    assert!(out.len() >= block.functions * PANEL && groups.end <= block.groups);
    // SAFETY: `isa` was detected; a block's functions, and so the places it writes to, are below `block.functions`.
    unsafe { dispatch::<SPREAD>(isa, map, panel, block, groups, std::ptr::null_mut(), out.as_mut_ptr(), 0) }
}

/// to[j * stride + lane] = k(panel lane, block row j)
///
/// # Safety
/// `to` must be valid for writing 64 values at each multiple of `stride`, one per block row.
pub(super) unsafe fn store(isa: Isa, map: Map, panel: Panel, block: &Block, to: *mut f32, stride: usize) {
    // SAFETY: `isa` was detected; `to` is the caller's promise.
    unsafe { dispatch::<STORE>(isa, map, panel, block, 0..block.groups, std::ptr::null_mut(), to, stride) }
}

/// What becomes of the values: added up to one f64 sum per lane, stored, or added to f32 sums of several functions.
const SUM: u8 = 0;
const STORE: u8 = 1;
const SPREAD: u8 = 2;

const EXP2: u8 = 0;
const IDENTITY: u8 = 1;
const POWER: u8 = 2;
const TANH: u8 = 3;

macro_rules! for_isa {
    ($name:ident, $lanes:ty, $groups:literal $(, $feature:literal)?) => {
        #[allow(clippy::too_many_arguments)]
        $(#[target_feature(enable = $feature)])?
        unsafe fn $name<const SINK: u8>(
            map: Map, panel: Panel, block: &Block, groups: Range<usize>, out: *mut f64, to: *mut f32, stride: usize,
        ) {
            // SAFETY: the promises of the module's head.
            unsafe {
                match map {
                    Map::Exp2 => run::<$lanes, $groups, SINK, EXP2>(0, panel, block, groups, out, to, stride),
                    Map::Identity => run::<$lanes, $groups, SINK, IDENTITY>(0, panel, block, groups, out, to, stride),
                    Map::Power(degree) => run::<$lanes, $groups, SINK, POWER>(degree, panel, block, groups, out, to, stride),
                    Map::Tanh => run::<$lanes, $groups, SINK, TANH>(0, panel, block, groups, out, to, stride),
                }
            }
        }
    };
}

// 4 x 6 accumulators of 32 registers; 2 x 6 of 16 registers (one vector of 16 lanes is two registers there)
#[cfg(target_arch = "x86_64")]
for_isa!(avx512, super::simd::Avx512, 4, "avx512f,avx512dq,avx512bw,avx512vl");
#[cfg(target_arch = "x86_64")]
for_isa!(avx2, super::simd::Avx2, 1, "avx2,fma");
for_isa!(portable, Portable, 1);

#[allow(clippy::too_many_arguments)]
unsafe fn dispatch<const SINK: u8>(
    isa: Isa,
    map: Map,
    panel: Panel,
    block: &Block,
    groups: Range<usize>,
    out: *mut f64,
    to: *mut f32,
    stride: usize,
) {
    // SAFETY: the promises of the module's head.
    unsafe {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => avx512::<SINK>(map, panel, block, groups, out, to, stride),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => avx2::<SINK>(map, panel, block, groups, out, to, stride),
            _ => portable::<SINK>(map, panel, block, groups, out, to, stride),
        }
    }
}

#[inline(always)]
unsafe fn apply<L: Lanes, const MAP: u8>(t: L::Vector, degree: u32) -> L::Vector {
    // SAFETY: the promises of the module's head.
    unsafe {
        match MAP {
            // t = -gamma |x - z|^2 up to rounding, which must not make it positive
            EXP2 => L::exp2(L::min(t, L::splat(0.0))),
            IDENTITY => t,
            POWER => {
                let (mut result, mut base, mut left) = (L::splat(1.0), t, degree);
                while left > 0 {
                    if left & 1 == 1 {
                        result = L::mul(result, base);
                    }
                    base = L::mul(base, base);
                    left >>= 1;
                }
                result
            }
            _ => {
                // tanh t = 1 - 2 / (1 + e^2t), saturated at |t| = 10
                let bound = L::splat(10.0);
                let t = L::max(t, L::splat(-10.0));
                let t = L::select(L::less(t, bound), t, bound);
                let denominator = L::add(L::exp2(L::mul(t, L::splat(2.0 * std::f32::consts::LOG2_E))), L::splat(1.0));
                let guess = L::reciprocal(denominator);
                // one Newton step: 22 bits and more
                let inverse = L::mul(guess, L::sub(L::splat(2.0), L::mul(denominator, guess)));
                L::fma(inverse, L::splat(-2.0), L::splat(1.0))
            }
        }
    }
}

/// One panel against one block, G vectors of lanes at a time.
#[allow(clippy::too_many_arguments)]
#[inline(always)]
unsafe fn run<L: Lanes, const G: usize, const SINK: u8, const MAP: u8>(
    degree: u32,
    panel: Panel,
    block: &Block,
    groups: Range<usize>,
    out: *mut f64,
    to: *mut f32,
    stride: usize,
) {
    // SAFETY: the promises of the module's head.
    unsafe {
        let mut start = 0;
        while start < PANEL {
            let slice = Slice::<L, G>::new(panel, start);
            let out = if SINK == SUM { out.add(start) } else { out };
            let to = if SINK == SUM { to } else { to.add(start) };
            match &block.entries {
                Entries::Dense(values) => {
                    dense::<L, G, SINK, MAP>(degree, &slice, block, groups.clone(), values.as_ptr(), out, to, stride);
                }
                Entries::Sparse { order, starts, entries } => {
                    for group in groups.clone() {
                        let pair = &entries[2 * starts[group]..2 * starts[group + 1]];
                        let slots = order.get(2 * group..).unwrap_or(&[]);
                        sparse::<L, G, SINK, MAP>(degree, &slice, block, group, pair, slots, out, to, stride);
                    }
                }
            }
            start += G * LANES;
        }
    }
}

/// G vectors of lanes of a panel.
struct Slice<L: Lanes, const G: usize> {
    values: *const f32,
    offsets: [L::Vector; G],
}

impl<L: Lanes, const G: usize> Slice<L, G> {
    #[inline(always)]
    unsafe fn new(panel: Panel, start: usize) -> Self {
        // SAFETY: the promises of the module's head.
        unsafe {
            let mut offsets = [L::splat(0.0); G];
            for g in 0..G {
                offsets[g] = L::load(panel.offsets.as_ptr().add(start + g * LANES));
            }
            Slice { values: panel.values.as_ptr().add(start), offsets }
        }
    }

    #[inline(always)]
    unsafe fn starting_at(&self, offset: f32) -> [L::Vector; G] {
        // SAFETY: the promises of the module's head.
        unsafe {
            let mut t = self.offsets;
            for g in 0..G {
                t[g] = L::add(t[g], L::splat(offset));
            }
            t
        }
    }
}

#[allow(clippy::too_many_arguments)]
#[inline(always)]
unsafe fn dense<L: Lanes, const G: usize, const SINK: u8, const MAP: u8>(
    degree: u32,
    slice: &Slice<L, G>,
    block: &Block,
    groups: Range<usize>,
    values: *const f32,
    out: *mut f64,
    to: *mut f32,
    stride: usize,
) {
    // SAFETY: the promises of the module's head.
    unsafe {
        for group in groups {
            if block.rows == 1 {
                let z = values.add(group * GROUP * block.cols);
                return single::<L, G, SINK, MAP>(degree, slice, block, z, out, to, stride);
            }
            let mut t = [slice.offsets; GROUP];
            for member in 0..GROUP {
                t[member] = slice.starting_at(*block.offsets.get_unchecked(group * GROUP + member));
            }
            let mut x = slice.values;
            let mut z = values.add(group * GROUP * block.cols);
            for _ in 0..block.cols {
                let mut lanes = [L::splat(0.0); G];
                for g in 0..G {
                    lanes[g] = L::load(x.add(g * LANES));
                }
                for member in 0..GROUP {
                    let factor = L::splat(*z.add(member));
                    for g in 0..G {
                        t[member][g] = L::fma(lanes[g], factor, t[member][g]);
                    }
                }
                x = x.add(PANEL);
                z = z.add(GROUP);
            }
            let mut sums = [L::splat(0.0); G];
            for member in 0..GROUP {
                let slot = group * GROUP + member;
                emit::<L, G, SINK, MAP>(degree, &t[member], block, slot, slot, &mut sums, to, stride);
            }
            if SINK == SUM {
                for g in 0..G {
                    L::add_to_f64(out.add(g * LANES), sums[g]);
                }
            }
        }
    }
}

/// A block of one row.
#[inline(always)]
unsafe fn single<L: Lanes, const G: usize, const SINK: u8, const MAP: u8>(
    degree: u32,
    slice: &Slice<L, G>,
    block: &Block,
    mut z: *const f32,
    out: *mut f64,
    to: *mut f32,
    stride: usize,
) {
    // SAFETY: the promises of the module's head.
    unsafe {
        let mut t = slice.starting_at(*block.offsets.get_unchecked(0));
        let mut x = slice.values;
        for _ in 0..block.cols {
            let factor = L::splat(*z);
            for g in 0..G {
                t[g] = L::fma(L::load(x.add(g * LANES)), factor, t[g]);
            }
            x = x.add(PANEL);
            z = z.add(GROUP);
        }
        let mut sums = [L::splat(0.0); G];
        emit::<L, G, SINK, MAP>(degree, &t, block, 0, 0, &mut sums, to, stride);
        if SINK == SUM {
            for g in 0..G {
                L::add_to_f64(out.add(g * LANES), sums[g]);
            }
        }
    }
}

#[allow(clippy::too_many_arguments)]
#[inline(always)]
unsafe fn sparse<L: Lanes, const G: usize, const SINK: u8, const MAP: u8>(
    degree: u32,
    slice: &Slice<L, G>,
    block: &Block,
    group: usize,
    pair: &[(u32, f32)],
    slots: &[u32],
    out: *mut f64,
    to: *mut f32,
    stride: usize,
) {
    // SAFETY: the promises of the module's head.
    unsafe {
        let mut first = slice.starting_at(*block.offsets.get_unchecked(2 * group));
        let mut second = slice.starting_at(*block.offsets.get_unchecked(2 * group + 1));
        for entry in pair.chunks_exact(2) {
            let (x, a) = (slice.values.add(entry[0].0 as usize), L::splat(entry[0].1));
            let (z, b) = (slice.values.add(entry[1].0 as usize), L::splat(entry[1].1));
            for g in 0..G {
                first[g] = L::fma(L::load(x.add(g * LANES)), a, first[g]);
                second[g] = L::fma(L::load(z.add(g * LANES)), b, second[g]);
            }
        }
        let mut sums = [L::splat(0.0); G];
        let row = |offset: usize| slots.get(offset).map_or(0, |&row| row as usize);
        emit::<L, G, SINK, MAP>(degree, &first, block, 2 * group, row(0), &mut sums, to, stride);
        emit::<L, G, SINK, MAP>(degree, &second, block, 2 * group + 1, row(1), &mut sums, to, stride);
        if SINK == SUM {
            for g in 0..G {
                L::add_to_f64(out.add(g * LANES), sums[g]);
            }
        }
    }
}

/// Maps the inner products of one block row and hands them to the sink. Padding slots have coefficient 0 and are not stored.
#[allow(clippy::too_many_arguments)]
#[inline(always)]
unsafe fn emit<L: Lanes, const G: usize, const SINK: u8, const MAP: u8>(
    degree: u32,
    t: &[L::Vector; G],
    block: &Block,
    slot: usize,
    row: usize,
    sums: &mut [L::Vector; G],
    to: *mut f32,
    stride: usize,
) {
    // SAFETY: the promises of the module's head.
    unsafe {
        match SINK {
            STORE => {
                if slot < block.rows {
                    for g in 0..G {
                        L::store(to.add(row * stride + g * LANES), apply::<L, MAP>(t[g], degree));
                    }
                }
            }
            SPREAD => {
                let mut values = *t;
                for g in 0..G {
                    values[g] = apply::<L, MAP>(t[g], degree);
                }
                let (from, end) = (*block.starts.get_unchecked(slot), *block.starts.get_unchecked(slot + 1));
                for &(place, coefficient) in block.terms.get_unchecked(from..end) {
                    let (to, coefficient) = (to.add(place as usize), L::splat(coefficient));
                    for g in 0..G {
                        let at = to.add(g * LANES);
                        L::store(at, L::fma(values[g], coefficient, L::load(at)));
                    }
                }
            }
            _ => {
                let coefficient = L::splat(*block.coefficients.get_unchecked(slot));
                for g in 0..G {
                    sums[g] = L::fma(apply::<L, MAP>(t[g], degree), coefficient, sums[g]);
                }
            }
        }
    }
}
