package config

import (
	"fmt"
	"strings"
)

// Fault is one error in the configuration. Its text never contains the value of a secret.
type Fault struct {
	Key     string // dotted key, or the variable if no key fits, or "" for the whole file
	Where   string // the variable, or file and line; "" for a default
	Problem string
}

// Error returns the fault in one line.
func (f Fault) Error() string {
	switch {
	case f.Key == "":
		return f.Where + ": " + f.Problem
	case f.Where == "":
		return f.Key + ": " + f.Problem
	}
	return f.Key + " (" + f.Where + "): " + f.Problem
}

// ofSetting returns the fault of a section as that of the setting that its problem begins with: "url must be https" of
// rates is a fault of rates.url.
func (f Fault) ofSetting() Fault {
	if _, section := sections[f.Key]; !section {
		return f
	}
	name := f.Problem[:len(f.Problem)-len(strings.TrimLeft(f.Problem, "abcdefghijklmnopqrstuvwxyz_"))]
	if e, ok := byKey[f.Key+"."+name]; ok {
		f.Key, f.Problem = e.key, strings.TrimLeft(f.Problem[len(name):], ": ")
	}
	return f
}

// Faults are all errors in the configuration, one fault a line.
type Faults []Fault

// Error lists the faults.
func (f Faults) Error() string {
	var b strings.Builder
	noun := "faults"
	if len(f) == 1 {
		noun = "fault"
	}
	fmt.Fprintf(&b, "%d %s in the configuration:", len(f), noun)
	for _, one := range f {
		b.WriteString("\n  " + one.Error())
	}
	return b.String()
}
