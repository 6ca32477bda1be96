// Package faults tests a started service from outside, as package blackbox does:
// what remains after processes, nodes, networks and databases fail. With the tag faults the scenarios are
// longer and the service is held to the times that it promises (make faults).
package faults

import (
	"testing"

	"castellan/internal/blackbox"
)

func TestMain(m *testing.M) { blackbox.Drive(m, nil) }
