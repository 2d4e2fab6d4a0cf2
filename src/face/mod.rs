//! The catalogue as people and clients meet it: over MCP and as commands. Siblings never import each other.

pub mod cli;
pub mod demo;
pub mod mcp;
pub mod program;
