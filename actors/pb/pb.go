// Package pb holds the messages that the virtual actors exchange, generated
// from messages.proto. The generated file is committed, so that building and
// testing need no protobuf compiler.
package pb

//go:generate protoc --go_out=. --go_opt=paths=source_relative messages.proto rates.proto
