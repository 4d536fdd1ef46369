//! Several descents at once.
//!
//! Each runs on a thread of its own and asks as if it were alone; when all that are under way have asked, one pass answers all of them. A pass costs a read
//! of the rows, or a round trip to those who have them, and that is paid once. Between two passes a descent factors a few matrices of the order of theta, little
//! next to a pass; these threads are not of the pool, which waits.
//!
//! Descents that come to the same place are one from there on: one that ends a width next to where another has ended as narrow a width ends altogether. What others
//! have reached is seen from the next pass on, so that nothing depends on which thread is faster.

use super::passes::{Answer, Ask, Asking, Passes, Request, Told, unexpected};
use super::sums::{State, Sums};
use super::{Spec, Work};
use crate::control::{Control, Progress};
use crate::error::{Error, Result};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Distance in scores, next to the width, within which two descents are one.
const NEAR: f64 = 0.25;

/// One descent: what it does with a [`Work`] of its own.
pub(super) type Descent<'a, T> = Box<dyn FnOnce(&mut Work) -> Result<T> + Send + 'a>;

/// Where descents have ended their widths.
#[derive(Default)]
pub(super) struct Board(Mutex<Reached>);

#[derive(Default)]
struct Reached {
    /// Since the last pass.
    new: Vec<(usize, State)>,
    /// What all may know.
    known: Vec<(usize, State)>,
}

impl Board {
    fn locked<T>(&self, with: impl FnOnce(&mut Reached) -> T) -> T {
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn publish(&self) {
        self.locked(|reached| {
            let new = std::mem::take(&mut reached.new);
            reached.known.extend(new);
        });
    }
}

impl Work<'_> {
    /// Tells the other descents where this one has ended a width.
    pub(super) fn post(&self, theta: &[f64], width: f64) {
        if let Some((place, board)) = self.board {
            board.locked(|reached| reached.new.push((place, State { theta: theta.to_vec(), width })));
        }
    }

    /// Whether one of the others is ahead of this one at the end of a width.
    pub(super) fn is_met(&self, theta: &[f64], width: f64) -> bool {
        let Some((place, board)) = self.board else { return false };
        let ahead = board.locked(|reached| {
            // at a narrower width, or the first of several at the same; so there is always one that goes on
            let ahead = |(other, state): &&(usize, State)| (state.width, *other) < (width, place) && *other != place;
            reached.known.iter().filter(ahead).map(|(_, state)| state.theta.clone()).collect::<Vec<_>>()
        });
        ahead.iter().any(|other| self.given.movement(other, theta) <= NEAR * width)
    }

    /// What each of some descents comes to.
    pub(super) fn together<T: Send>(&mut self, descents: Vec<Descent<'_, T>>) -> Result<Vec<T>> {
        let (cols, rows, shift) = (self.asking.passes.cols(), self.asking.passes.rows(), self.asking.passes.shift());
        let shift = shift.to_vec();
        let board = Board::default();
        let silent = self.control.silent();
        let (send, messages) = channel();
        let mut ends: Vec<Option<T>> = descents.iter().map(|_| None).collect();
        thread::scope(|scope| {
            let mut answers = Vec::new();
            for (place, descent) in descents.into_iter().enumerate() {
                let (back, receive) = channel();
                answers.push(back);
                let mut relay = Relay { cols, rows, shift: &shift, place, send: send.clone(), receive };
                let (given, send, board, silent) = (self.given.clone(), send.clone(), &board, &silent);
                let work = move || {
                    let own = || {
                        let asking = Asking { passes: &mut relay, control: silent, count: 0 };
                        descent(&mut Work { board: Some((place, board)), ..given.work(asking, silent) })
                    };
                    let end = catch_unwind(AssertUnwindSafe(own));
                    // whoever does not listen any more has an error of another descent
                    let _ = send.send((place, Message::End(end)));
                };
                if let Err(error) = thread::Builder::new().spawn_scoped(scope, work) {
                    return Err(Error::Numerical { problem: format!("no thread can be started: {error}") });
                }
            }
            self.answer_all(&messages, &answers, &mut ends, &board)
            // dropped here, the ways back end what still waits for an answer
        })?;
        Ok(ends.into_iter().flatten().collect())
    }

    /// Passes, until all descents have ended.
    fn answer_all<T>(
        &mut self,
        messages: &Receiver<(usize, Message<T>)>,
        answers: &[Sender<Vec<Told>>],
        ends: &mut [Option<T>],
        board: &Board,
    ) -> Result<()> {
        let mut under_way = answers.len();
        while under_way > 0 {
            let mut asked: Vec<(usize, Vec<Ask>)> = Vec::new();
            while asked.len() < under_way {
                match messages.recv() {
                    Ok((place, Message::Asked(asks))) => asked.push((place, asks)),
                    Ok((place, Message::End(end))) => {
                        ends[place] = Some(end.unwrap_or_else(|panic| resume_unwind(panic))?);
                        under_way -= 1;
                    }
                    Err(_) => return Err(unexpected()),
                }
            }
            board.publish();
            if asked.is_empty() {
                break;
            }
            asked.sort_by_key(|(place, _)| *place);
            let told = self.one_pass(&asked)?;
            for ((place, _), told) in asked.iter().zip(told) {
                // it waits for this
                let _ = answers[*place].send(told);
            }
        }
        Ok(())
    }

    /// What is told to each of those who have asked.
    fn one_pass(&mut self, asked: &[(usize, Vec<Ask>)]) -> Result<Vec<Vec<Told>>> {
        // all points of one loss go into one question, so that rows are scored once for all of them
        let mut groups: Vec<(Spec, Vec<State>)> = Vec::new();
        let mut asks: Vec<Ask> = Vec::new();
        // of each question the group it went into, or nothing
        let mut places: Vec<Option<usize>> = Vec::new();
        for ask in asked.iter().flat_map(|(_, asks)| asks) {
            let Ask::Statistics { spec, states } = ask else {
                asks.push(ask.clone());
                places.push(None);
                continue;
            };
            let of_loss = |(other, _): &(Spec, _)| other.shape == spec.shape && other.ceiling == spec.ceiling;
            let at = groups.iter().position(of_loss).unwrap_or_else(|| {
                groups.push((spec.clone(), Vec::new()));
                groups.len() - 1
            });
            groups[at].1.extend(states.iter().cloned());
            places.push(Some(at));
        }
        let others = asks.len();
        let statistics =
            |(spec, states): &(Spec, Vec<State>)| Ask::Statistics { spec: spec.clone(), states: states.clone() };
        asks.extend(groups.iter().map(statistics));
        let mut told = self.asking.all(asks)?;
        let mut sums = Vec::new();
        for (told, (_, states)) in told.split_off(others).into_iter().zip(&groups) {
            match told {
                Told::Statistics(some) if some.len() == states.len() => sums.push(some),
                _ => return Err(unexpected()),
            }
        }
        for ((spec, states), sums) in groups.iter().zip(&sums) {
            if spec.shape == self.given.spec.shape && spec.ceiling == self.given.spec.ceiling {
                self.report(states, sums);
            }
        }
        let mut sums: Vec<_> = sums.into_iter().map(Vec::into_iter).collect();
        let (mut told, mut places) = (told.into_iter(), places.into_iter());
        let mut one = |ask: &Ask| match (ask, places.next()?) {
            (Ask::Statistics { states, .. }, Some(at)) => {
                Some(Told::Statistics(sums[at].by_ref().take(states.len()).collect()))
            }
            _ => told.next(),
        };
        asked
            .iter()
            .map(|(_, asks)| asks.iter().map(&mut one).collect::<Option<Vec<_>>>().ok_or_else(unexpected))
            .collect()
    }

    /// The lowest objective of a pass.
    fn report(&self, points: &[State], sums: &[Sums]) {
        let objectives = points.iter().zip(sums).map(|(state, sums)| self.penalty(&state.theta) + sums.loss);
        let lowest = objectives.fold(f64::INFINITY, f64::min);
        if lowest.is_finite() {
            let objective = lowest * self.given.largest;
            self.control.report(Progress { stage: "descent", step: self.asking.count, objective, gap: f64::NAN });
        }
    }
}

/// What a descent has to say.
enum Message<T> {
    Asked(Vec<Ask>),
    End(thread::Result<Result<T>>),
}

/// The rows as a descent sees them.
struct Relay<'a, T> {
    cols: usize,
    rows: Option<u64>,
    shift: &'a [f64],
    place: usize,
    send: Sender<(usize, Message<T>)>,
    receive: Receiver<Vec<Told>>,
}

impl<T: Send> Passes for Relay<'_, T> {
    fn cols(&self) -> usize {
        self.cols
    }

    fn shift(&self) -> &[f64] {
        self.shift
    }

    fn rows(&self) -> Option<u64> {
        self.rows
    }

    fn pass(&mut self, request: &Request, _: &Control) -> Result<Answer> {
        let sent = self.send.send((self.place, Message::Asked(request.asks.clone())));
        // no answer comes where another descent, or the pass itself, has failed: that is the error which is told
        sent.ok().and_then(|()| self.receive.recv().ok()).map(Answer).ok_or(Error::Interrupted)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Local, MOST_SENT, Shape, Task, survey};
    use super::*;
    use crate::data::{Chunk, Parts};
    use crate::problem::Loss;

    const ROWS: usize = 4000;

    fn parts() -> Parts {
        let mut state = 1u64 << 63 | 5;
        let mut next = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1 << 24) as f32
        };
        let codes: Vec<u32> = (0..ROWS).map(|_| u32::from(next() < 0.5)).collect();
        let x = codes.iter().flat_map(|code| [next() + 0.4 * *code as f32, next()]).collect();
        Parts::new(2, vec![Chunk { first: 0, x, codes, weights: Vec::new() }])
    }

    fn with_work<T>(loss: Loss, control: &Control, with: impl FnOnce(&mut Work) -> T) -> T {
        let mut rows = parts();
        let mut passes = Local::new(&mut rows);
        let first = survey(&mut passes, 2, 1000, 3, control).unwrap();
        let task = Task {
            classes: 2,
            terms: vec![vec![(0, 0.1)], vec![(1, 0.1)]],
            shape: Shape::Margin,
            loss,
            penalty: None,
            starts: Vec::new(),
            intercept: true,
            memory: 1 << 24,
            sums: MOST_SENT,
        };
        with(&mut Work::new(&mut passes, &first, &task, false, control).unwrap())
    }

    fn values(work: &mut Work, theta: &[f64]) -> Result<Vec<f64>> {
        let sums = work.statistics(theta, 0.3)?;
        let ray = work.ray(theta, &[0.0; 3], &[0.25, 0.5], 0.1)?;
        Ok([vec![sums.value, sums.loss], sums.gradient, ray].concat())
    }

    #[test]
    fn each_gets_its_own_answers_and_passes_are_shared() {
        with_work(Loss::hinge(), &Control::default(), |work| {
            let points = [vec![1.0, -0.5, 0.1], vec![-2.0, 0.7, 0.0], vec![0.3, 0.3, -1.0]];
            let alone: Vec<Vec<f64>> = points.iter().map(|point| values(work, point).unwrap()).collect();
            assert!(alone[0] != alone[1] && alone[1] != alone[2]);
            let along = |work: &mut Work| work.ray(&points[0], &points[1], &[0.1, 0.2, 0.3], 0.2);
            let other = along(work).unwrap();
            let before = work.asking.count;
            let mut descents: Vec<Descent<Vec<f64>>> = Vec::new();
            for point in &points {
                descents.push(Box::new(|work| values(work, point)));
            }
            // one that asks something else, and one that asks nothing
            descents.push(Box::new(along));
            descents.push(Box::new(|_| Ok(Vec::new())));
            let found = work.together(descents).unwrap();
            assert_eq!(work.asking.count - before, 2);
            assert_eq!(found[..3], alone[..]);
            assert_eq!((&found[3], &found[4]), (&other, &Vec::new()));
        });
    }

    #[test]
    fn an_error_ends_all_of_them() {
        with_work(Loss::hinge(), &Control::default(), |work| {
            let descents: Vec<Descent<Vec<f64>>> = vec![
                Box::new(|work| values(work, &[1.0, 1.0, 1.0])),
                Box::new(|_| Err(Error::TimeLimit)),
                Box::new(|work| values(work, &[1.0, 2.0, 1.0])),
            ];
            assert!(matches!(work.together(descents), Err(Error::TimeLimit)));
        });
        // a pass that is interrupted
        let asked = std::sync::atomic::AtomicUsize::new(0);
        let interrupt = || asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) >= 4;
        with_work(Loss::hinge(), &Control::default().interrupt(&interrupt), |work| {
            let endless: Descent<()> = Box::new(|work| {
                loop {
                    values(work, &[1.0, 1.0, 1.0])?;
                }
            });
            assert!(matches!(work.together(vec![endless]), Err(Error::Interrupted)));
        });
    }

    #[test]
    fn a_panic_is_passed_on_and_nobody_waits() {
        with_work(Loss::hinge(), &Control::default(), |work| {
            let descents: Vec<Descent<Vec<f64>>> =
                vec![Box::new(|work| values(work, &[1.0, 1.0, 1.0])), Box::new(|_| panic!("on purpose"))];
            assert!(catch_unwind(AssertUnwindSafe(|| work.together(descents))).is_err());
        });
    }

    #[test]
    fn of_descents_that_meet_the_one_ahead_goes_on() {
        with_work(Loss::hinge(), &Control::default(), |work| {
            let here = vec![0.5, 0.5, 0.0];
            let there = vec![0.5, 0.5, 1.0];
            let at = |theta: &Vec<f64>, width: f64| -> Descent<bool> {
                let theta = theta.clone();
                Box::new(move |work| {
                    work.post(&theta, width);
                    assert!(!work.is_met(&theta, width), "nothing is known before a pass");
                    work.statistics(&theta, width)?;
                    Ok(work.is_met(&theta, width))
                })
            };
            let met = work.together(vec![at(&here, 0.2), at(&here, 0.1), at(&there, 0.3), at(&here, 0.1)]).unwrap();
            assert_eq!(met, [true, false, false, true]);
            // alone nobody is met
            assert!(!work.is_met(&here, 0.5));
        });
    }
}
