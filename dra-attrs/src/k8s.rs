//! Check that `k8s-openapi` is built for Kubernetes 1.37 or newer.

k8s_openapi::k8s_if_ge_1_37! {
    pub(crate) use k8s_openapi::api::resource::v1::DeviceAttribute;
}

k8s_openapi::k8s_if_le_1_36! {
    compile_error!(
        "dra-attrs needs the Kubernetes 1.37 types (list-typed device attributes): enable the feature `v1_37` or \
         `latest` of k8s-openapi in the binary that uses it"
    );

    /// Placeholder for `DeviceAttribute` of Kubernetes 1.37, so that the message about its version is the only compile
    /// error.
    #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
    pub struct DeviceAttribute {
        pub bool: Option<bool>,
        pub bools: Option<Vec<bool>>,
        pub int: Option<i64>,
        pub ints: Option<Vec<i64>>,
        pub string: Option<String>,
        pub strings: Option<Vec<String>>,
        pub version: Option<String>,
        pub versions: Option<Vec<String>>,
    }
}
