// Package harness holds what the tests of several areas do with a started service: log an administrator in, enrol a
// device or an authenticator, follow a mailing, make rules of the firewall.
//
// The one idea: package blackbox knows processes, HTTP and databases; this package knows what castellan's endpoints
// mean. A helper that one area alone uses stays in the tests of that area. Start reading at Admin in admin.go.
package harness
