package main

import (
	"debug/buildinfo"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// program is a build of the service for comparisons. It is started with settings only, so it may be of any version. A
// build of castellan sends its codes to an SMS gateway of the driver. A build of this bench sends them through a pipe,
// as in the other measurements.
type program struct {
	name, path string
	bench      bool // path is a build of this bench
}

// programs are the value of the flag -program.
type programs []program

func (ps *programs) String() string { return "" }

// Set adds "NAME=PATH".
func (ps *programs) Set(v string) error {
	name, path, ok := strings.Cut(v, "=")
	if !ok || name == "" {
		return fmt.Errorf("%q is not NAME=PATH", v)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return err
	}
	p := program{name: name, path: path}
	switch info.Path {
	case "castellan/cmd/castellan":
	case "castellan/internal/bench", "castellan/internal/bench.test":
		p.bench = true
	default:
		return fmt.Errorf("%s is a build of %s, neither of castellan nor of its bench", path, info.Path)
	}
	*ps = append(*ps, p)
	return nil
}

// launch starts the program and returns when it answers.
func (p program) launch(settings []string) (s *server, err error) {
	if p.bench {
		s, err = launch(exec.Command(p.path), append(slices.Clone(settings), childRole+"="+roleService))
	} else {
		s, err = launch(exec.Command(p.path, "serve"), settings)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	return s, nil
}

// start starts the program and returns when it answers. end stops it.
func (p program) start(settings []string) (s *server, end func() error, err error) {
	if p.bench {
		if s, err = p.launch(settings); err != nil {
			return nil, nil, err
		}
		return s, s.stop, nil
	}
	g, err := newGateway()
	if err != nil {
		return nil, nil, err
	}
	if s, err = p.launch(append(slices.Clone(settings), g.settings()...)); err != nil {
		g.listener.Close()
		return nil, nil, err
	}
	s.codes = g.codes
	return s, func() error {
		defer g.listener.Close()
		s.Terminate()
		return s.stop()
	}, nil
}

// The accounts that every version creates in development mode, by their mail addresses.
const (
	demoUser  = "demo@demo.castellan.test"
	demoAdmin = "admin@demo.castellan.test"
)

// seed makes the program create its schema, and adds the accounts of that many rounds as copies of its demo user. They
// are numbered like those of place.seed. The administrator is the program's own, whose roles are in other tables as
// well.
func (p program) seed(at *place, rounds int) {
	_, end, err := p.start(at.environ)
	must(err)
	must(within(p.name, end()))
	_, _, hash := hashed(at.environ)
	values := map[string]string{"id": "'01J0000000000000000' || k", "email": "'u' || k || '@bench.castellan.test'",
		"phone": "'+90533' || k", "password_hash": "'" + hash + "'"}
	must(within(p.name+": accounts", attempt(func() {
		at.exec(fmt.Sprintf("UPDATE users SET phone = '+90%s', password_hash = '%s' WHERE email = '%s'", phone(people), hash,
			demoAdmin))
		at.clone(demoUser, 0, people-1, values)
		if rounds > 1 {
			at.clone(demoUser, people+1, account(rounds, 0)-1, values)
		}
	})))
	at.analyze()
}
