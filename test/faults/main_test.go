// Package faults tests a started service from outside, like package blackbox: failures of processes, nodes, networks
// and databases, a cluster of several nodes, and attacks on other services, replayed (docs/replayed.md). With the tag
// faults the scenarios are longer and the service must meet its promised times (make faults).
package faults

import (
	"testing"

	"castellan/internal/blackbox"
)

func TestMain(m *testing.M) { blackbox.Drive(m, nil) }
