//! Prices of calls.

/// Price of a call, estimated and actual. In comments s is the estimated size of an argument, n the actual one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cost {
    /// 1
    One,
    /// Estimated 1, actually nothing.
    Fallback,
    /// Nothing of its own: what `&&`, `||` and `?:` call is priced elsewhere.
    Control,
    AddText,
    AddList,
    Compare,
    Equal,
    NotEqual,
    InList,
    Index,
    BytesOfString,
    StringOfBytes,
    Contains,
    Affix,
    Matches,
    /// Of lists and of strings.
    IndexOf,
    /// One walk over the text, which has a result of that size.
    Copy,
    Replace,
    Split,
    Join,
    Quote,
    Format,
    Aggregate,
    Sort,
    SortBy,
    Distinct,
    Reverse,
    Slice,
    Flatten,
    Range,
    SetPair,
    SetEquivalent,
    Includes,
    /// One walk over a text, which is read.
    Parse,
    Find,
    /// Two walks over a text.
    Canonical,
    ContainsIp,
    ContainsIpText,
    ContainsCidr,
    ContainsCidrText,
    Validate,
    Check,
    Selector,
}

impl Cost {
    /// Returns true for prices that a call has only if it is known which overload it means.
    pub(crate) const fn is_of_overload(self) -> bool {
        matches!(
            self,
            Self::AddText
                | Self::AddList
                | Self::Compare
                | Self::InList
                | Self::StringOfBytes
                | Self::BytesOfString
                | Self::Sort
                | Self::SortBy
        )
    }
}
