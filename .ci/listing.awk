# Makes docs/api.txt of what cargo-public-api prints: functions of implemented traits are left out, since the trait says them,
# the fields of a variant stand on its line, and implementations of traits that can be derived are left out, derived or not.
function flush_variant() {
  if (variant != "") print fields == "" ? variant : variant " { " fields " }"
  variant = fields = ""
}
variant != "" && index($0, variant "::") == 1 {
  fields = (fields == "" ? "" : fields ", ") substr($0, length(variant) + 3)
  next
}
{ flush_variant() }
/^impl.* (std::clone::Clone|std::marker::Copy|std::fmt::Debug|std::default::Default|std::cmp::[A-Za-z]*|std::hash::Hash|serde[a-z_]*::.*(Serialize|Deserialize<'de>)|Clone|Copy|Debug|Default|Eq|PartialEq|Ord|PartialOrd|Hash|Serialize|Deserialize<'de>) for / { of_trait = 1; next }
/^impl.*::Sealed for / { of_trait = 1; next }
/^impl Drop for / { of_trait = 1; next }
# rustdoc has an implementation at the trait and at the type.
/^(unsafe )?impl.* for / { of_trait = 1; if (!seen[$0]++) print; next }
/^impl/ { of_trait = 0; next }
/^(#\[[a-z_]*\] )?pub (struct|enum|trait|mod|use|union|static) / { of_trait = 0 }
of_trait && /^pub ((const )?fn|const|type) [a-z_0-9:]+::[A-Z][A-Za-z0-9]*(<[^(]*>)?::/ { next }
# Of an implementation for a type of another crate: it has no path.
of_trait && /^pub ((const )?fn|const|type) / && !/^pub ((const )?fn|const|type) (dra_[a-z]+|nnn|readiness|poolstatus)::/ { next }
/^pub [a-z_0-9:]+::[A-Z][A-Za-z0-9]*::[A-Z][A-Za-z0-9_]*$/ { variant = $0; next }
{ print }
END { flush_variant() }
