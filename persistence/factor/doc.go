// Package factor keeps second factors and what they confirm: challenges with their pushes, MFA policies, passkeys and
// remembered browsers.
//
// The one idea: a store is one file, with its rows, its kinds of writes and its queries;
// package persistence orders the kinds of all areas. Start reading at challenge.go.
package factor
