// Package kit keeps what every area builds on: the audit with its checkpoints and archives,
// notes of changes, and answers to repeated requests. It also keeps keys, jobs, parameters, and the external ids and
// events of other services.
//
// The one idea: a store is one file, with its rows, its kinds of writes and its queries;
// package persistence orders the kinds of all areas. Start reading at audit.go.
package kit
