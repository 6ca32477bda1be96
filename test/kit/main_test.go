// Package kit tests a started service from outside, like package blackbox, in what every area uses. That is
// the audit, jobs, keys, tokens, metrics, the published documents, commands, upgrades and the files for
// operators.
package kit

import (
	"testing"

	"castellan/internal/blackbox"
)

func TestMain(m *testing.M) { blackbox.Drive(m, nil) }
