//! Names of slices: the position of a slice in its pool, the driver and the owner.
//!
//! kube-scheduler tries the slices of a pool in the order of their names, so that a name begins with the position.
//!
//! Source: `resourceslicecontroller.go` of Kubernetes 1.36 and later. The fixed names are this crate's own.

use dra_attrs::Index;
use k8s_openapi::api::resource::v1::ResourceSlice;

use crate::driver::digest::hex_digest;
use crate::driver::slice_plan::SlicePlan;

/// Smallest number of hexadecimal digits of a position.
const MIN_DIGITS: usize = 5;

/// Largest length in bytes of a fixed name before its hash: a name has at most 253.
const MAX_READABLE_LEN: usize = 242;

/// Number of hexadecimal digits of the hash in a fixed name.
const HASH_DIGITS: usize = 10;

const SEPARATOR: char = '-';

impl SlicePlan<'_> {
    /// Returns the beginning of the name of a slice, for `metadata.generateName`: position, driver and owner, with a `-` at
    /// the end. `slice_count` is the number of slices of the pool.
    ///
    /// The API server shortens a long beginning to 58 bytes before it adds 5 random characters. The position remains.
    ///
    /// ```
    /// use dra_attrs::Index;
    /// use dra_node::driver::SlicePlan;
    /// assert_eq!(SlicePlan::generate_name(Index::from(31), 40, "gpu.example.com", Some("node-1")), "0001f-gpu.example.com-node-1-");
    /// ```
    #[must_use]
    pub fn generate_name(index: Index<ResourceSlice>, slice_count: usize, driver: &str, owner: Option<&str>) -> String {
        let width = index_digits(slice_count);
        let owner = owner.map(|owner| format!("{owner}{SEPARATOR}")).unwrap_or_default();
        format!("{:0width$x}{SEPARATOR}{driver}{SEPARATOR}{owner}", usize::from(index))
    }

    /// Returns the fixed name of a slice: that of [`SlicePlan::generate_name`], shortened to 242 bytes, and a hash of driver, owner and
    /// pool instead of random characters. The driver's name is taken in lower case.
    ///
    /// With a fixed name, a create that was sent twice or planned on an old view fails with `AlreadyExists`, instead of
    /// leaving a second slice for the same devices.
    ///
    /// ```
    /// use dra_attrs::Index;
    /// use dra_node::driver::SlicePlan;
    /// let name = SlicePlan::fixed_name(Index::FIRST, 1, "gpu.example.com", Some("node-1"), "p");
    /// assert_eq!(name, "00000-gpu.example.com-node-1-9053acc98f");
    /// ```
    #[must_use]
    pub fn fixed_name(
        index: Index<ResourceSlice>,
        slice_count: usize,
        driver: &str,
        owner: Option<&str>,
        pool: &str,
    ) -> String {
        let driver = driver.to_lowercase();
        let mut name = Self::generate_name(index, slice_count, &driver, owner);
        while name.len() > MAX_READABLE_LEN {
            name.pop();
        }
        let readable = name.trim_end_matches([SEPARATOR, '.']);
        let hash = hex_digest(&[driver.as_str(), owner.unwrap_or_default(), pool].join("\0"), HASH_DIGITS);
        format!("{readable}{SEPARATOR}{hash}")
    }

    /// Returns the position that the name of a slice begins with; `None` for a name of another form. `slice_count` is the
    /// number of slices that the pool should have; the position may be larger.
    ///
    /// ```
    /// use dra_attrs::Index;
    /// use dra_node::driver::SlicePlan;
    /// assert_eq!(SlicePlan::decode_index("0001f-gpu.example.com-x", 40), Some(Index::from(31)));
    /// assert_eq!(SlicePlan::decode_index("node-1-gpu.example.com-7kx2p", 40), None);
    /// ```
    #[must_use]
    pub fn decode_index(name: &str, slice_count: usize) -> Option<Index<ResourceSlice>> {
        let (digits, _) = name.split_once(SEPARATOR)?;
        let is_index =
            digits.len() == index_digits(slice_count) && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        is_index.then(|| usize::from_str_radix(digits, 16).ok().map(Index::from)).flatten()
    }
}

/// Returns the number of hexadecimal digits that positions of a pool are written with.
fn index_digits(slice_count: usize) -> usize {
    let last = slice_count.saturating_sub(1);
    format!("{last:x}").len().max(MIN_DIGITS)
}
