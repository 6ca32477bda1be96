// Package harness holds the steps that tests of several areas share: log an administrator in, enrol a device
// or an authenticator, follow a mailing, add firewall rules.
//
// The one idea: package blackbox handles processes, HTTP and databases; this package knows castellan's
// endpoints. A helper that only one area uses stays in the tests of that area. Start reading at Admin in
// admin.go.
package harness
