//! Tests of the selector as a whole.
