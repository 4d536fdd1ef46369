//! Products of the kernel matrix with several columns at once: values are computed once for all of them.
//!
//! Results are laid out in panels, as the tiles produce them: element (row, function) is at
//! (row / 64 * functions + function) * 64 + row % 64, see [`place`].

use super::super::super::tiles::{self, Coefficients, PANEL};
use super::{Gram, NONE, Packed, Source};
use rayon::prelude::*;

/// Where element (row, function) of a product stands.
#[inline(always)]
pub(crate) fn place(functions: usize, row: usize, function: usize) -> usize {
    (row / PANEL * functions + function) * PANEL + row % PANEL
}

impl Gram<'_> {
    /// out += K[all rows, rows] coefficients, keeping rows while there is room.
    pub(crate) fn multiply_all_many(&mut self, rows: &[u32], coefficients: &Coefficients, out: &mut [f64]) {
        if rows.is_empty() {
            return;
        }
        if self.keeps_rows() {
            self.keep(rows);
        }
        let (mut kept, mut others) = (Vec::new(), Vec::new());
        let mut weights = Coefficients::new(coefficients.functions());
        for (position, &row) in rows.iter().enumerate() {
            if self.kept.slot[row as usize] != NONE {
                kept.push((self.kept_row(row), coefficients.row(position)));
            } else {
                others.push(row);
                weights.push_entries(coefficients.row(position));
            }
        }
        if !kept.is_empty() {
            add_kept(&kept, coefficients, out);
        }
        if others.is_empty() {
            return;
        }
        match &self.source {
            Source::Tiles { all, .. } => self.multiply_many(all, &others, &weights, out),
            Source::Function => {
                let all: Vec<u32> = (0..self.rows as u32).collect();
                self.function_products(&all, &others, &weights, |row| row, out);
            }
        }
    }

    /// out += K[packed rows, rows] coefficients, from tiles.
    fn multiply_many(&self, packed: &Packed, rows: &[u32], coefficients: &Coefficients, out: &mut [f64]) {
        let (Source::Tiles { prepared, .. }, Some(panels)) = (&self.source, &packed.panels) else { return };
        let functions = coefficients.functions();
        let places = |position: usize| (0..functions).map(move |function| place(functions, position, function));
        let before: Vec<f64> = packed.far.iter().flat_map(|&far| places(far)).map(|at| out[at]).collect();
        tiles::multiply_many(self.isa, panels, prepared, rows, coefficients, out);
        if !packed.far.is_empty() {
            packed.far.iter().flat_map(|&far| places(far)).zip(before).for_each(|(at, value)| out[at] = value);
            let far_rows: Vec<u32> = packed.far.iter().map(|&position| packed.rows[position]).collect();
            self.function_products(&far_rows, rows, coefficients, |position| packed.far[position], out);
        }
    }

    /// out += K[list, rows] coefficients in double precision; row `position` of the list goes to row `to(position)`.
    fn function_products(
        &self,
        list: &[u32],
        rows: &[u32],
        coefficients: &Coefficients,
        to: impl Fn(usize) -> usize,
        out: &mut [f64],
    ) {
        let functions = coefficients.functions();
        let mut sums = vec![0.0; list.len() * functions];
        let mut chunks: Vec<&mut [f64]> = sums.chunks_mut(functions).collect();
        self.kernel.for_each_row(self.x, self.x, list, rows, &mut chunks, |sums, values| {
            self.look_at(values);
            coefficients.add_products(values, sums);
        });
        for (position, sums) in sums.chunks_exact(functions).enumerate() {
            for (function, sum) in sums.iter().enumerate() {
                out[place(functions, to(position), function)] += sum / self.unit;
            }
        }
    }

    /// K[targets, rows] coefficients in double precision, from the data themselves: targets x functions.
    pub(crate) fn exact_many(&self, rows: &[u32], coefficients: &Coefficients, targets: &[u32]) -> Vec<f64> {
        let functions = coefficients.functions();
        let mut sums = vec![0.0; targets.len() * functions];
        let mut chunks: Vec<&mut [f64]> = sums.chunks_mut(functions).collect();
        self.kernel.for_each_row(self.x, self.x, targets, rows, &mut chunks, |sums, values| {
            self.look_at(values);
            coefficients.add_products(values, sums);
            sums.iter_mut().for_each(|sum| *sum /= self.unit);
        });
        sums
    }
}

/// A row of K and its coefficients.
type Weighted<'r> = (&'r [f32], &'r [(u32, f64)]);

/// out += sum of coefficients times rows, eight products in f32 at a time, then f64.
fn add_kept(kept: &[Weighted], coefficients: &Coefficients, out: &mut [f64]) {
    let largest = coefficients.largest();
    if largest == 0.0 {
        return;
    }
    let functions = coefficients.functions();
    let size = functions * PANEL;
    out.par_chunks_mut(size).enumerate().with_min_len(4).for_each(|(panel, out)| {
        let mut partial = vec![0f32; size];
        for eight in kept.chunks(8) {
            partial.fill(0.0);
            for (row, terms) in eight {
                let values = &row[panel * PANEL..(panel + 1) * PANEL];
                for &(function, coefficient) in *terms {
                    let c = (coefficient / largest) as f32;
                    let partial = &mut partial[function as usize * PANEL..][..PANEL];
                    partial.iter_mut().zip(values).for_each(|(partial, value)| *partial += c * value);
                }
            }
            for (out, partial) in out.iter_mut().zip(&partial) {
                *out += largest * f64::from(*partial);
            }
        }
    });
}
