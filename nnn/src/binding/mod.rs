//! The binding cycle: whether the chosen node is announced, what runs in which order, what a failure means, and what the
//! API server does.
//!
//! | table | where |
//! |---|---|
//! | start of the cycle | [`start`] |
//! | groups of `PreBind` plugins | [`prebind`] |
//! | failure | [`failure`] |
//! | the API server | [`api_server`] |
//! | claims | [`claims`] |

pub mod api_server;
pub mod claims;
pub mod failure;
pub mod prebind;
pub mod start;
