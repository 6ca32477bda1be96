// Package faults tests a started service from outside, like package blackbox, through failures of processes,
// nodes, networks and databases. With the tag faults the scenarios are longer and the service must meet its
// promised times (make faults).
package faults

import (
	"testing"

	"castellan/internal/blackbox"
)

func TestMain(m *testing.M) { blackbox.Drive(m, nil) }
