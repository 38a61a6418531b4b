//! Rules of the API server for written objects, as far as they differ between releases.

use super::behaviours::behaviours;

/// Decides how the API server of one release validates and stores objects of `resource.k8s.io`.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a row is written without `..`, and only in this crate")]
pub struct Validation {
    /// Slice that has the counter sets of which devices consume.
    pub counter_sets: CounterSets,
    /// Error of an attribute that has no value, or several.
    pub one_value: OneValue,
    /// Error of an empty domain or identifier in the name of an attribute or capacity.
    pub absent_name: AbsentValue,
    /// Errors of an empty name of a driver.
    pub empty_driver: EmptyDriver,
    /// Check of the items of a list that is too long.
    pub long_list: LongList,
    /// Path of a second item with one key.
    pub duplicate: DuplicatePath,
    /// Path of a bad key in a map of attributes, capacities or counters.
    pub bad_key: BadKeyPath,
    /// Check of a claim's spec in an update.
    pub claim_update: SpecUpdate,
    /// Message of an allocation that is changed.
    pub changed_allocation: ChangedAllocation,
    /// Messages of a name of an extended resource that is invalid.
    pub extended_name: ExtendedNameErrors,
    /// Unit of the length in the messages of names that are too long.
    pub name_length: NameLength,
    /// Errors of admin access in a namespace without the label.
    pub admin_access: AdminAccessErrors,
    /// Rules for conditions in a status.
    pub conditions: ConditionRules,
    /// Check of a request that has both `exactly` and `firstAvailable`.
    pub both_kinds: BothKinds,
    /// Taints of a device that an update leaves as they are.
    pub stored_taints: StoredPart,
    /// Selectors of a class that an update leaves as they are.
    pub stored_selectors: StoredPart,
    /// Capacities of a device that an update leaves as they are.
    pub stored_capacities: StoredPart,
    /// Invalid tolerations in an allocation result.
    pub allocated_tolerations: Strictness,
    /// Name of an attribute with two slashes.
    pub two_slashes: Strictness,
    /// Taint with the effect `None`.
    pub none_effect: Strictness,
    /// Numbers of a range of a request policy that can't be counted in steps.
    pub range_numbers: RangeNumbers,
    /// Path of a default outside of the range of its request policy.
    pub default_path: DefaultPath,
    /// Name of a driver with upper case letters.
    pub upper_case_driver: UpperCaseDriver,
    /// Time of a rule's taint whose effect changes while its time is sent as it is stored.
    pub changed_effect: ChangedEffect,
    /// Paths of fields that are stored although their gate is off; `[*]` is every item of a list.
    pub kept_while_off: &'static [&'static str],
}

/// Error of an attribute that has no value, or several.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_enums, reason = "a new behaviour must stop whoever decides by it")]
pub enum OneValue {
    /// The message says that there must be one value; the kind of error without a value is given.
    Counted(AbsentValue),
    /// The message names the fields.
    Named,
}

behaviours! {
    /// Place of the counter sets of which devices consume.
    CounterSets {
        /// In the slice of the devices, which may name no other sets or counters.
        WithDevices,
        /// In slices of their own; the API server does not look for them.
        Apart,
    }
    /// Error of a value that is not there.
    AbsentValue {
        /// The value is required.
        Required,
        /// The empty value is invalid.
        Invalid,
    }
    /// Errors of an empty name of a driver.
    EmptyDriver {
        /// The name is required, and it is invalid.
        RequiredAndInvalid,
        /// The name is required.
        Required,
    }
    /// Check of the items of a list that is too long.
    LongList {
        /// The length is an error, and each item is checked.
        Checked,
        /// The length is the only error.
        Counted,
    }
    /// Path of a second item with one key.
    DuplicatePath {
        /// The key's field in the item.
        Key,
        /// The item.
        Item,
    }
    /// Path of a bad key of a map.
    BadKeyPath {
        /// The entry of the key.
        Entry,
        /// The map.
        Map,
    }
    /// Check of an immutable spec in an update.
    SpecUpdate {
        /// The new spec is validated, and compared with the stored one.
        ValidatedAndCompared,
        /// The new spec is compared with the stored one.
        Compared,
    }
    /// Time of a taint whose effect changes.
    ChangedEffect {
        /// It stays.
        Kept,
        /// The effect begins now.
        Renewed,
    }
    /// Message of an allocation that is changed.
    ChangedAllocation {
        /// The field is immutable.
        Immutable,
        /// The field cannot be modified once set.
        OnceSet,
    }
    /// Messages of a name of an extended resource that is invalid.
    ExtendedNameErrors {
        /// One, that it is invalid.
        One,
        /// One for each rule that it breaks.
        ByRule,
    }
    /// Unit of the length in the messages of names that are too long.
    NameLength {
        /// Characters.
        Characters,
        /// Bytes, which are what is counted.
        Bytes,
    }
    /// Errors of admin access in a namespace without the label.
    AdminAccessErrors {
        /// One, for the first request.
        First,
        /// One for each request.
        Each,
    }
    /// Rules for conditions in a status.
    ConditionRules {
        /// Those that are written in code: an empty type or status is invalid, a second condition of a type has the path
        /// of its type, and each condition of a list that is too long is checked.
        Written,
        /// Those that are declared on the type: an empty type or status is missing, a second condition of a type has its
        /// own path, and a list that is too long is only counted.
        Declared,
    }
    /// Check of a request that has both `exactly` and `firstAvailable`.
    BothKinds {
        /// Both are an error, and each is validated.
        Validated,
        /// Both are an error, and neither is validated.
        Refused,
    }
    /// Treatment of a part of an object that an update leaves as it is stored.
    StoredPart {
        /// It is validated again.
        Validated,
        /// It was valid once, and is not validated again.
        Trusted,
    }
    /// Answer to an unusual value.
    Strictness {
        /// The value is stored.
        Accepted,
        /// The value is an error.
        Refused,
    }
    /// Answer to numbers of a range of a request policy that can't be counted in steps.
    RangeNumbers {
        /// They are used as they are. A step of 0 is divided by: the handler of the request ends, and the connection is
        /// cut.
        Unguarded,
        /// They are errors: a step of 0 or less, negative bounds, and those that are too large.
        Guarded,
    }
    /// Path of a default outside of the range of its request policy.
    DefaultPath {
        /// The bound of the range that the default is beyond.
        Bound,
        /// A field `default` of the range, which the API does not have.
        Default,
    }
    /// Answer to a driver's name with upper case letters.
    UpperCaseDriver {
        /// The name is stored without a word.
        Silent,
        /// The name is stored with a warning.
        Warned,
    }
}
