//! The authorizer's functions, of which no expression has a value to call them on.

use super::function::functions;

functions! { meter;
    "path" { "Authorizer.(string) -> PathCheck" One; }
    "group" { "Authorizer.(string) -> GroupCheck" One; }
    "serviceAccount" { "Authorizer.(string, string) -> Authorizer" One; }
    "resource" { "GroupCheck.(string) -> ResourceCheck" One; }
    "subresource" { "ResourceCheck.(string) -> ResourceCheck" One; }
    "namespace" { "ResourceCheck.(string) -> ResourceCheck" One; }
    "name" { "ResourceCheck.(string) -> ResourceCheck" One; }
    "fieldSelector" { "ResourceCheck.(string) -> ResourceCheck" Selector; }
    "labelSelector" { "ResourceCheck.(string) -> ResourceCheck" Selector; }
    "check" { "PathCheck.(string) -> Decision; ResourceCheck.(string) -> Decision" Check; }
    "allowed" { "Decision.() -> bool" One; }
    "reason" { "Decision.() -> string" One; }
    "errored" { "Decision.() -> bool" One; }
    "error" { "Decision.() -> string" One; }
}
