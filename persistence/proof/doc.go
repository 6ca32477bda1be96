// Package proof keeps what settles a challenge: authenticators, devices and the links of accounts to other login
// services.
//
// The one idea: a store is one file, with its rows, its kinds of writes and its queries;
// package persistence orders the kinds of all areas. Start reading at totp.go.
package proof
