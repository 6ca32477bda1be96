// Package console tests a started service from outside, like package blackbox: the operators' console and the
// pages of the service, in a browser.
package console

import (
	"testing"

	"castellan/internal/blackbox"
)

func TestMain(m *testing.M) { blackbox.Drive(m, nil) }
