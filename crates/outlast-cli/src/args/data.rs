//! Options about data files.

use clap::{Args, ValueEnum};
use outlast::io::{Format, Header, ReadOptions, TargetColumn};
use std::path::PathBuf;

/// How data files are read.
#[derive(Args, Clone)]
pub struct DataArgs {
    /// Column of the labels: a name, or a number (1 is the first, -1 the last).
    /// [default: the one column named label, target, class or y, else the last; where a model knows its columns by
    /// name, the only one it does not use]
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true, help_heading = "Data")]
    pub target: Option<String>,
    /// Column to leave out: a name or a number; may be given several times
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true, help_heading = "Data")]
    pub ignore: Vec<String>,
    /// Format of the data
    #[arg(long, value_enum, default_value_t = FormatArg::Auto, help_heading = "Data")]
    pub format: FormatArg,
    /// The first line holds the names of the columns [default: recognised]
    #[arg(long, help_heading = "Data")]
    pub header: bool,
    /// The first line holds data
    #[arg(long, conflicts_with = "header", help_heading = "Data")]
    pub no_header: bool,
    /// Sign between fields: one character, or comma, semicolon, tab, space [default: recognised]
    #[arg(long, value_name = "SIGN", value_parser = delimiter, help_heading = "Data")]
    pub delimiter: Option<u8>,
    /// Number of features of LIBSVM data, if larger than the largest index
    #[arg(long, value_name = "NUMBER", value_parser = features, help_heading = "Data")]
    pub features: Option<usize>,
    /// Indices of LIBSVM data count from 0
    #[arg(long, help_heading = "Data")]
    pub zero_based: bool,
}

/// How data larger than memory are read.
#[derive(Args, Clone)]
pub struct StreamArgs {
    /// Read the data in parts, several times: for data larger than memory. Linear kernel; truncated hinge, capped, lq
    #[arg(long, help_heading = "Data")]
    pub stream: bool,
    /// Memory that --stream may use, like 512MB or 4GB
    #[arg(long, value_name = "SIZE", value_parser = memory, default_value = "1GB", requires = "stream", help_heading = "Data")]
    pub memory: usize,
    /// Folder in which --stream keeps the rows while it works, 4 bytes a value [default: that of temporary files]
    #[arg(long, value_name = "FOLDER", requires = "stream", help_heading = "Data")]
    pub cache: Option<PathBuf>,
}

/// Least memory of a fit in parts.
const LEAST_MEMORY: f64 = 64e6;

fn memory(text: &str) -> Result<usize, String> {
    let text = text.trim();
    let digits = text.find(|sign: char| !(sign.is_ascii_digit() || sign == '.')).unwrap_or(text.len());
    let unit = match text[digits..].trim().to_ascii_uppercase().as_str() {
        "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "TB" => 1e12,
        _ => return Err("must be a number with a unit: 512MB, 4GB".into()),
    };
    match text[..digits].parse::<f64>() {
        Ok(number) if number * unit >= LEAST_MEMORY && number * unit <= 1e18 => Ok((number * unit) as usize),
        Ok(_) => Err("must be at least 64MB".into()),
        Err(_) => Err("must be a number with a unit: 512MB, 4GB".into()),
    }
}

/// Formats by name.
#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
pub enum FormatArg {
    /// By the ending of the name, else by the first line
    Auto,
    /// Fields separated by commas, semicolons or tabs
    Csv,
    /// label index:value index:value ...
    Libsvm,
    /// Columns in binary form
    Parquet,
}

impl DataArgs {
    /// The options as the readers want them.
    pub fn options(&self, weight_column: Option<&str>) -> ReadOptions {
        ReadOptions {
            format: match self.format {
                FormatArg::Auto => Format::Auto,
                FormatArg::Csv => Format::Csv,
                FormatArg::Libsvm => Format::Libsvm,
                FormatArg::Parquet => Format::Parquet,
            },
            header: match (self.header, self.no_header) {
                (true, _) => Header::Yes,
                (_, true) => Header::No,
                _ => Header::Auto,
            },
            delimiter: self.delimiter,
            target: self.target.clone().map_or(TargetColumn::Auto, TargetColumn::Given),
            weight_column: weight_column.map(str::to_string),
            ignore: self.ignore.clone(),
            features: self.features,
            zero_based: self.zero_based,
        }
    }
}

fn features(text: &str) -> Result<usize, String> {
    match text.parse::<u32>() {
        Ok(number) if number > 0 && number < u32::MAX => Ok(number as usize),
        _ => Err(format!("must be a whole number from 1 to {}", u32::MAX - 1)),
    }
}

fn delimiter(text: &str) -> Result<u8, String> {
    match text {
        "comma" => Ok(b','),
        "semicolon" => Ok(b';'),
        "tab" | "\\t" => Ok(b'\t'),
        "space" => Ok(b' '),
        _ => match text.as_bytes() {
            [sign] if sign.is_ascii() && !sign.is_ascii_alphanumeric() && !b"\"\r\n.+-".contains(sign) => Ok(*sign),
            _ => {
                Err("must be one character (no letter, digit, quote, sign or dot), or comma, semicolon, tab, space"
                    .into())
            }
        },
    }
}
