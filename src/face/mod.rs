//! The catalogue as people and clients see it: over MCP and as commands. Siblings never import each other.

pub mod cli;
pub mod demo;
pub mod mcp;
pub mod program;
