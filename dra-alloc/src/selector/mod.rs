//! Selectors: CEL expressions over one device.

use std::sync::Arc;

use k8s_openapi::api::resource::v1::{Device, DeviceAttribute};

/// What a selector is evaluated on.
#[derive(Clone, Copy, Debug)]
pub struct SelectorInput<'a> {
    /// The driver of the device's slice.
    pub driver: &'a str,
    /// The device.
    pub device: &'a Device,
}

/// Why an expression is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {}

/// Why an evaluation gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EvaluationError {}

/// A compiled expression.
#[derive(Debug)]
pub struct Selector(());

impl Selector {
    /// Compiles an expression.
    ///
    /// # Errors
    /// What is wrong with the expression.
    pub fn compile(_expression: &str) -> Result<Self, CompileError> {
        Ok(Self(()))
    }

    /// Whether the expression holds for a device.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn matches(&self, _input: SelectorInput<'_>) -> Result<bool, EvaluationError> {
        Ok(true)
    }

    /// The value of the expression, as an attribute.
    ///
    /// # Errors
    /// Why there is no value.
    pub fn derive(&self, _input: SelectorInput<'_>) -> Result<DeviceAttribute, EvaluationError> {
        Ok(DeviceAttribute::default())
    }
}

/// Compiled expressions, kept by the caller across calls.
#[derive(Debug, Default)]
pub struct SelectorCache(());

impl SelectorCache {
    /// The compiled form of an expression.
    ///
    /// # Errors
    /// What is wrong with the expression.
    pub fn compile(&self, expression: &str) -> Result<Arc<Selector>, CompileError> {
        Selector::compile(expression).map(Arc::new)
    }
}
