//! Parts that other packages of the family need, and nobody else: no promise is made about them.

pub use crate::device::soundness::is_sound;
pub use crate::list_memory::ListMemory;
pub use crate::meter::Bound;
pub use crate::searched::Searched;
pub use crate::selector::EXPRESSION_LIMIT;
