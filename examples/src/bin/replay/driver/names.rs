//! The operation `driver.names`: names of slices and of sockets.

use dra_alloc::Index;
use dra_alloc::driver::{PluginInfo, SlicePlan, SocketPathError};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::operation::Operation;
use crate::refusal::Refusal;

/// Question about a name, by the function that answers it.
#[derive(Deserialize)]
#[serde(tag = "fn", rename_all = "camelCase", rename_all_fields = "camelCase")]
enum NamesInput {
    GenerateName { index: usize, slice_count: usize, driver: String, owner_name: Option<String> },
    FixedName { index: usize, slice_count: usize, driver: String, owner_name: Option<String>, pool: String },
    DecodeIndex { name: String, slice_count: usize },
    RegistrarSocket { directory: String, driver: String, pod_uid: Option<String> },
    DataSocket { directory: String, pod_uid: Option<String> },
    KubeletAuthority { path: String },
}

pub(crate) fn names(input: Value) -> Result<Operation, Refusal> {
    super::operation(input, |question: &NamesInput| Ok(answer(question)))
}

fn answer(question: &NamesInput) -> Value {
    match question {
        NamesInput::GenerateName { index, slice_count, driver, owner_name } => {
            json!({"value": SlicePlan::generate_name(Index::from(*index), *slice_count, driver, owner_name.as_deref())})
        }
        NamesInput::FixedName { index, slice_count, driver, owner_name, pool } => {
            json!({"value": SlicePlan::fixed_name(Index::from(*index), *slice_count, driver, owner_name.as_deref(), pool)})
        }
        NamesInput::DecodeIndex { name, slice_count } => json!({"value": SlicePlan::decode_index(name, *slice_count)}),
        NamesInput::RegistrarSocket { directory, driver, pod_uid } => {
            socket(PluginInfo::registrar_socket(directory, driver, pod_uid.as_deref()))
        }
        NamesInput::DataSocket { directory, pod_uid } => socket(PluginInfo::data_socket(directory, pod_uid.as_deref())),
        NamesInput::KubeletAuthority { path } => json!({"value": PluginInfo::kubelet_authority(path)}),
    }
}

fn socket(name: Result<String, SocketPathError>) -> Value {
    name.map_or_else(|_| json!({"error": {"kind": "PathTooLong"}}), |name| json!({"value": name}))
}
