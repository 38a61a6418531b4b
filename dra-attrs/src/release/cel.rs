//! Environment of CEL expressions, as far as it differs between releases.

use super::behaviours::behaviours;

/// Decides which expressions of a release compile.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a row is written without `..`, and only in this crate")]
pub struct CelRules {
    /// Attributes that are lists, in expressions of stored objects, and of new ones while the gate is on.
    pub attributes: CelAttributes,
    /// Functions of lists in expressions that are created or changed. Those of stored objects may use all.
    pub new_functions: ListFunctions,
}

behaviours! {
    /// Type of a device's attribute in an expression.
    CelAttributes {
        /// One value: there is no function `includes`.
        Values,
        /// A value or a list.
        ValuesAndLists,
    }
    /// Functions of lists.
    ListFunctions {
        /// Those of the libraries before Kubernetes 1.34.
        Basic,
        /// Beyond that `lists.range`, `slice`, `flatten`, `sort`, `sortBy`, `distinct` and `reverse`.
        All,
    }
}
