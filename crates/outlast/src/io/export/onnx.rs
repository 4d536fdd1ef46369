//! A model as an ONNX graph.
//!
//! ```text
//! X (rows x features, double)  ->  scores (rows, or rows x classes, double)  ->  label (rows; whole numbers or text)
//!
//! linear    X W' + b
//! rbf       exp(-gamma max(0, |x|^2 - 2 X S' + |s|^2)) A + b           S the support vectors, A their coefficients
//! poly      (gamma X S' + coef0)^degree A + b
//! sigmoid   tanh(gamma X S' + coef0) A + b
//! ```
//!
//! A model that puts its columns on one scale begins with (X - shift) / scale, pulled in to a thousand, in the place of X.
//!
//! Plain operators of the standard set, nothing of the machine learning domain. Two classes: the second where the score is
//! positive; more: the largest score, the first of equals.

use super::protobuf::*;
use super::{ExportFormat, Exported, refuse, what};
use crate::data::{Class, Design, FARTHEST};
use crate::error::Result;
use crate::model::{Function, Predictor, Rows};
use crate::problem::KernelFunction;
use prost::Message;

/// Version of the operators, old enough for most runtimes.
const OPERATORS: i64 = 17;
/// Version of the file's form that goes with it.
const FORM: i64 = 8;

const INT64: i32 = 7;
const STRING: i32 = 8;
const DOUBLE: i32 = 11;
/// The type of an attribute that is a whole number.
const WHOLE: i32 = 2;

pub(super) fn export(predictor: &Predictor) -> Result<Exported> {
    let mut graph = Graph::default();
    let x = graph.scaled(predictor);
    let scores = match &predictor.function {
        Function::Linear { weights } => graph.linear(&x, weights, predictor),
        Function::Squares { weights } => {
            let squares = graph.node("Mul", &[&x, &x], &[]);
            let both = graph.node("Concat", &[&x, &squares], &[("axis", 1)]);
            graph.linear(&both, weights, predictor)
        }
        Function::Kernel { rows } => {
            let values = graph.kernel(&x, predictor, rows)?;
            let m = predictor.functions();
            let coefficients = predictor.coefficients.clone();
            let weights = graph.numbers("dual_coef", &[coefficients.len() / m, m], coefficients);
            graph.node("MatMul", &[&values, &weights], &[])
        }
        Function::Precomputed => {
            return Err(refuse(ExportFormat::Onnx, what(predictor), "libsvm or json"));
        }
    };
    let bytes = graph.finish(predictor, &scores).encode_to_vec();
    Ok(Exported { bytes, notes: Vec::new() })
}

/// A graph in the making: operators in order, and constants.
#[derive(Default)]
struct Graph {
    nodes: Vec<NodeProto>,
    constants: Vec<TensorProto>,
}

impl Graph {
    /// Adds an operator; returns the name of what it gives.
    fn node(&mut self, operator: &str, inputs: &[&str], attributes: &[(&str, i64)]) -> String {
        let name = format!("{}_{}", operator.to_lowercase(), self.nodes.len());
        self.nodes.push(NodeProto {
            input: inputs.iter().map(|input| input.to_string()).collect(),
            output: vec![name.clone()],
            name: name.clone(),
            op_type: operator.to_string(),
            attribute: attributes
                .iter()
                .map(|&(name, i)| AttributeProto { name: name.to_string(), i, r#type: WHOLE })
                .collect(),
        });
        name
    }

    /// Renames what the last operator gives.
    fn call(&mut self, name: &str) {
        if let Some(last) = self.nodes.last_mut() {
            last.output = vec![name.to_string()];
        }
    }

    fn numbers(&mut self, name: &str, shape: &[usize], values: Vec<f64>) -> String {
        self.constants.push(TensorProto {
            dims: shape.iter().map(|&length| length as i64).collect(),
            data_type: DOUBLE,
            name: name.to_string(),
            double_data: values,
            ..TensorProto::default()
        });
        name.to_string()
    }

    fn number(&mut self, name: &str, value: f64) -> String {
        self.numbers(name, &[], vec![value])
    }

    fn whole(&mut self, name: &str, values: Vec<i64>) -> String {
        self.constants.push(TensorProto {
            dims: vec![values.len() as i64],
            data_type: INT64,
            name: name.to_string(),
            int64_data: values,
            ..TensorProto::default()
        });
        name.to_string()
    }

    /// The columns as the functions take them.
    fn scaled(&mut self, predictor: &Predictor) -> String {
        let Some(scaling) = &predictor.scaling else { return "X".to_string() };
        let d = predictor.features;
        let (shift, scale) = (
            self.numbers("shift", &[1, d], scaling.shift.clone()),
            self.numbers("scale", &[1, d], scaling.scale.clone()),
        );
        let centred = self.node("Sub", &["X", &shift], &[]);
        let scaled = self.node("Div", &[&centred, &scale], &[]);
        let (low, high) = (self.number("lowest", -FARTHEST), self.number("highest", FARTHEST));
        self.node("Clip", &[&scaled, &low, &high], &[])
    }

    /// X W'
    fn linear(&mut self, x: &str, weights: &[f64], predictor: &Predictor) -> String {
        let m = predictor.functions();
        let d = weights.len() / m;
        let turned = (0..d).flat_map(|column| (0..m).map(move |function| weights[function * d + column])).collect();
        let weights = self.numbers("coef", &[d, m], turned);
        self.node("MatMul", &[x, &weights], &[])
    }

    /// Kernel values, rows x support vectors.
    fn kernel(&mut self, x: &str, predictor: &Predictor, rows: &Rows) -> Result<String> {
        let rows = rows.as_design();
        let (s, d) = (Design::rows(rows), rows.cols());
        // gamma goes with the support vectors: as a factor of the product onnxruntime would keep it in single precision
        let factor = match predictor.kernel {
            KernelFunction::Poly { gamma, .. } | KernelFunction::Sigmoid { gamma, .. } => gamma,
            _ => 1.0,
        };
        let mut turned = vec![0.0; d * s];
        let mut lengths = vec![0.0; s];
        for row in 0..s {
            rows.for_each(row, &mut |column, value| {
                turned[column * s + row] = factor * value;
                lengths[row] += value * value;
            });
        }
        let vectors = self.numbers("support_vectors", &[d, s], turned);
        let inner = self.node("MatMul", &[x, &vectors], &[]);
        match predictor.kernel {
            KernelFunction::Rbf { gamma } => {
                let squares = self.node("Mul", &[x, x], &[]);
                let axis = self.whole("axis", vec![1]);
                let own = self.node("ReduceSum", &[&squares, &axis], &[("keepdims", 1)]);
                let lengths = self.numbers("lengths", &[1, s], lengths);
                let two = self.number("two", 2.0);
                let twice = self.node("Mul", &[&inner, &two], &[]);
                let sum = self.node("Add", &[&own, &lengths], &[]);
                let distance = self.node("Sub", &[&sum, &twice], &[]);
                let zero = self.number("zero", 0.0);
                let distance = self.node("Max", &[&distance, &zero], &[]);
                let factor = self.number("minus_gamma", -gamma);
                let exponent = self.node("Mul", &[&distance, &factor], &[]);
                Ok(self.node("Exp", &[&exponent], &[]))
            }
            KernelFunction::Poly { degree, coef0, .. } => {
                let shifted = self.shifted(&inner, coef0);
                let degree = self.number("degree", f64::from(degree));
                Ok(self.node("Pow", &[&shifted, &degree], &[]))
            }
            KernelFunction::Sigmoid { coef0, .. } => {
                let shifted = self.shifted(&inner, coef0);
                Ok(self.node("Tanh", &[&shifted], &[]))
            }
            KernelFunction::Linear => Ok(inner),
            KernelFunction::Precomputed | KernelFunction::Custom(_) => {
                Err(refuse(ExportFormat::Onnx, what(predictor), "none: only the author of such a kernel knows it"))
            }
        }
    }

    /// inner + coef0
    fn shifted(&mut self, inner: &str, coef0: f64) -> String {
        let coef0 = self.number("coef0", coef0);
        self.node("Add", &[inner, &coef0], &[])
    }

    /// From f without intercepts to scores and labels, and the file.
    fn finish(mut self, predictor: &Predictor, function: &str) -> ModelProto {
        let m = predictor.functions();
        let intercept = self.numbers("intercept", &[m], predictor.intercepts.clone());
        let scores = self.node("Add", &[function, &intercept], &[]);
        let code = if m == 1 {
            let column = self.whole("column", vec![1]);
            self.node("Squeeze", &[&scores, &column], &[]);
            self.call("scores");
            let level = self.number("level", 0.0);
            let positive = self.node("Greater", &["scores", &level], &[]);
            self.node("Cast", &[&positive], &[("to", i64::from(INT64))])
        } else {
            self.call("scores");
            self.node("ArgMax", &["scores"], &[("axis", 1), ("keepdims", 0)])
        };
        let (classes, kind) = self.classes(predictor);
        self.node("Gather", &[&classes, &code], &[("axis", 0)]);
        self.call("label");
        let scores = if m == 1 { vec![rows()] } else { vec![rows(), length(m)] };
        let graph = GraphProto {
            node: self.nodes,
            name: "outlast".to_string(),
            initializer: self.constants,
            input: vec![value("X", DOUBLE, vec![rows(), length(predictor.features)])],
            output: vec![value("label", kind, vec![rows()]), value("scores", DOUBLE, scores)],
        };
        ModelProto {
            ir_version: FORM,
            producer_name: "outlast".to_string(),
            producer_version: env!("CARGO_PKG_VERSION").to_string(),
            doc_string: String::new(),
            graph: Some(graph),
            opset_import: vec![OperatorSetIdProto { domain: String::new(), version: OPERATORS }],
        }
    }

    /// The table of classes: whole numbers, or text if one of them is.
    fn classes(&mut self, predictor: &Predictor) -> (String, i32) {
        let whole = |class: &Class| match class {
            Class::Int(value) => Some(*value),
            Class::Text(_) => None,
        };
        if let Some(numbers) = predictor.classes.iter().map(whole).collect() {
            return (self.whole("classes", numbers), INT64);
        }
        self.constants.push(TensorProto {
            dims: vec![predictor.classes.len() as i64],
            data_type: STRING,
            name: "classes".to_string(),
            string_data: predictor.classes.iter().map(|class| class.to_string().into_bytes()).collect(),
            ..TensorProto::default()
        });
        ("classes".to_string(), STRING)
    }
}

fn rows() -> Dimension {
    Dimension { length: Some(Length::Name("rows".to_string())) }
}

fn length(value: usize) -> Dimension {
    Dimension { length: Some(Length::Value(value as i64)) }
}

fn value(name: &str, elem_type: i32, dim: Vec<Dimension>) -> ValueInfoProto {
    let tensor_type = Some(TensorType { elem_type, shape: Some(TensorShapeProto { dim }) });
    ValueInfoProto { name: name.to_string(), r#type: Some(TypeProto { tensor_type }) }
}
