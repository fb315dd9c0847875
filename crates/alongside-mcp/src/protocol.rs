//! The MCP methods that a companion needs.

use alongside_core::SessionKey;
use alongside_core::dialect::ClientInfo;
use alongside_wire::rpc::{INVALID_PARAMS, METHOD_NOT_FOUND, Request, RpcError};
use serde::{Deserialize, Serialize};

use crate::companion::Companion;
use crate::endpoint::Endpoint;
use crate::tools::{self, ToolCall};

/// The MCP versions that agents may request, newest first. Tools and notifications are the same in all.
pub const PROTOCOL_VERSIONS: [&str; 5] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07"];

/// Longer names and versions are truncated.
const MAX_CLIENT_NAME_CHARS: usize = 128;

const LOGGING_LEVELS: [&str; 8] = [
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
];

pub(crate) fn supported_version(version: &str) -> Option<&'static str> {
    PROTOCOL_VERSIONS.into_iter().find(|supported| *supported == version)
}

pub(crate) struct InitializeParams {
    pub(crate) client: ClientInfo,
    /// The version to use: the client's, or our newest if that is unknown.
    pub(crate) version: &'static str,
}

pub(crate) fn initialize_params(request: &Request<'_>) -> Result<InitializeParams, RpcError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Parameters {
        protocol_version: String,
        client_info: ClientInfo,
    }

    let parameters: Parameters = request.params()?;
    let cut = |text: String| text.chars().take(MAX_CLIENT_NAME_CHARS).collect();
    Ok(InitializeParams {
        client: ClientInfo {
            name: cut(parameters.client_info.name),
            version: cut(parameters.client_info.version),
        },
        version: supported_version(&parameters.protocol_version).unwrap_or(PROTOCOL_VERSIONS[0]),
    })
}

pub(crate) fn initialize_reply(request: &Request<'_>, version: &'static str) -> String {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Initialized {
        protocol_version: &'static str,
        capabilities: Capabilities,
        server_info: ServerInfo,
    }

    #[derive(Serialize)]
    struct Capabilities {
        tools: Empty,
        logging: Empty,
    }

    #[derive(Serialize)]
    struct ServerInfo {
        name: &'static str,
        version: &'static str,
    }

    request.response(&Initialized {
        protocol_version: version,
        capabilities: Capabilities {
            tools: Empty {},
            logging: Empty {},
        },
        server_info: ServerInfo {
            name: "alongside",
            version: env!("CARGO_PKG_VERSION"),
        },
    })
}

/// `{}`
#[derive(Serialize)]
struct Empty {}

/// Responds to any request except `initialize`.
pub(crate) async fn respond<C: Companion>(
    endpoint: &Endpoint<C>,
    session: &SessionKey,
    request: &Request<'_>,
) -> String {
    let reply = match &*request.method {
        "ping" => Ok(request.response(&Empty {})),
        "logging/setLevel" => set_level(request),
        "tools/list" => Ok(request.response(&tools::list(endpoint.registry.dialect(session).tools))),
        "tools/call" => match ToolCall::of(request) {
            Ok(call) => Ok(tools::call(endpoint, session, call).await),
            Err(error) => Err(error),
        },
        method => Err(RpcError::new(
            METHOD_NOT_FOUND,
            format!("Unknown method {}.", shortened(method)),
        )),
    };
    reply.unwrap_or_else(|error| request.error(&error))
}

/// Accepts any level. Nothing is ever logged to an agent, but official companions declare the capability.
fn set_level(request: &Request<'_>) -> Result<String, RpcError> {
    #[derive(Deserialize)]
    struct Parameters {
        level: String,
    }

    let Parameters { level } = request.params()?;
    if LOGGING_LEVELS.contains(&level.as_str()) {
        Ok(request.response(&Empty {}))
    } else {
        Err(RpcError::new(
            INVALID_PARAMS,
            format!("Unknown logging level {}.", shortened(&level)),
        ))
    }
}

/// Text from a client, for an error message.
pub(crate) fn shortened(text: &str) -> String {
    text.chars().take(64).collect::<String>().escape_debug().to_string()
}
