//! Shares of devices, and generators of their IDs.

use k8s_openapi::api::resource::v1::ResourceClaim;

/// A share of a device that is about to be allocated.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Share<'a> {
    /// Claim that gets the share.
    pub claim: &'a ResourceClaim,
    /// Number of the share within one call of the allocator, from 1.
    pub number: u64,
}

/// Generates share IDs. Implemented for every `Fn(Share) -> String`.
///
/// The allocator's default is [`share_id`]. A generator that returns the same ID for the same share gives the same answers
/// from any number of threads.
pub trait ShareIds: Sync {
    /// Returns the ID of a share, unique among the shares of a device, in the form of a lowercase UUID.
    fn share_id(&self, share: Share<'_>) -> String;
}

impl<F: Fn(Share<'_>) -> String + Sync> ShareIds for F {
    fn share_id(&self, share: Share<'_>) -> String {
        self(share)
    }
}

/// Returns a UUID computed from the claim (namespace, name, UID) and the number of the share.
///
/// It is unique in a cluster, since a claim has one allocation at a time: 128 bits of FNV-1a, as a UUID of version 8.
///
/// ```
/// use dra_alloc::{Allocator, Classes, Inventory, Profile, Share};
/// // The default; a caller with a UUID library passes a function of its own.
/// let (inventory, classes) = (Inventory::default(), Classes::default());
/// let random = |_: Share<'_>| "9b2f2bd3-43f6-4c55-9a2c-7a3c2e0c9d11".to_owned();
/// let allocator = Allocator::new(Profile::V1_37, &inventory, &classes).with_share_ids(&random);
/// # let _ = allocator;
/// ```
#[must_use]
pub fn share_id(share: Share<'_>) -> String {
    const VERSION: u128 = 0x8 << 76;
    const VARIANT: u128 = 0x2 << 62;
    const FIXED: u128 = (0xf << 76) | (0x3 << 62);
    let metadata = &share.claim.metadata;
    let texts = [&metadata.namespace, &metadata.name, &metadata.uid].map(|text| text.as_deref().unwrap_or_default());
    let texts = texts.into_iter().flat_map(|text| text.bytes().chain([0]));
    let hash = fnv_1a(texts.chain(share.number.to_be_bytes()));
    let hex = format!("{:032x}", hash & !FIXED | VERSION | VARIANT);
    let groups =
        [(0, 8), (8, 12), (12, 16), (16, 20), (20, 32)].map(|(from, to)| hex.get(from..to).unwrap_or_default());
    groups.join("-")
}

/// Returns the 128-bit FNV-1a hash of `bytes`.
fn fnv_1a(bytes: impl Iterator<Item = u8>) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.fold(BASIS, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_uuids_that_depend_on_claim_and_number() {
        let mut claim = ResourceClaim::default();
        claim.metadata.uid = Some("1".to_owned());
        let id = |claim: &ResourceClaim, number| share_id(Share { claim, number });
        let first = id(&claim, 1);
        assert_eq!(first.len(), 36);
        assert_eq!(first.split('-').map(str::len).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
        assert_eq!((first.as_bytes()[14], first.as_bytes()[19] & 0xfc), (b'8', b'8'));
        assert_eq!(first, id(&claim, 1));
        assert_ne!(first, id(&claim, 2));
        claim.metadata.uid = Some("2".to_owned());
        assert_ne!(first, id(&claim, 1));
    }

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(fnv_1a(b"a".iter().copied()), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
    }
}
