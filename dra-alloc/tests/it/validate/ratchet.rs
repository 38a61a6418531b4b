//! ratchet
