// Package pb holds the generated messages that the virtual actors exchange; their source is messages.proto. The
// generated file is committed, so building and testing need no protobuf compiler.
package pb

//go:generate protoc --go_out=. --go_opt=paths=source_relative messages.proto rates.proto
