package office

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
	"castellan/internal/child"
	"castellan/internal/pgtest"
	"castellan/internal/porttest"
)

// litestreamVersion is what the tests use; the recipe is for this minor version.
const litestreamVersion = "v0.5.18"

var litestreamProgram = flag.String("litestream", "", "the file of Litestream's program, if it is built")

// recipePage has the recipes for restores to an instant. exampleInstant is the instant of its examples.
const (
	recipePage     = "operations/point-in-time#"
	exampleInstant = "2026-11-29T01:00:00+00:00"
)

// recipe follows the sections of recipePage.
type recipe struct {
	paths     []string // of the page, each followed by its path in the test
	castellan func(args ...string) blackbox.Output
	run       func(t *testing.T, line string) // every other line
}

// follow runs the lines of a section's code blocks in order. changes replace texts of the page, as an operator does.
func (r *recipe) follow(t *testing.T, section string, changes ...string) {
	t.Helper()
	for line := range strings.Lines(strings.Join(commands(t, recipePage+section, append(changes, r.paths...)...), "")) {
		words := strings.Fields(line)
		if words[0] != "castellan" {
			r.run(t, strings.TrimSpace(line))
		} else if got := r.castellan(words[1:]...); got.Code != 0 {
			t.Fatalf("%s: exit %d: %s%s", line, got.Code, got.Out, got.ErrOut)
		}
	}
}

// The page's recipe for PostgreSQL archives the log under load, and restores the database from one base backup to
// random instants, not in their order. The rest is as in TestRestoredBackups.
func TestPostgreSQLIsRestoredToAnInstant(t *testing.T) {
	t.Parallel()
	pgtest.Need(t)
	server := storetest.Value(pgtest.Start())(t)
	t.Cleanup(server.Stop)
	dsn := storetest.Value(server.Database("castellan"))(t)
	p := newPlatform(t, blackbox.NewSiteOn(t, dsn))
	run := func(t *testing.T, line string) {
		t.Helper()
		do := server.Run
		switch line {
		case "systemctl stop postgresql":
			do = func(string) error {
				server.Shutdown()
				return os.RemoveAll(server.Folder() + "/archive/2") // if a restore is repeated
			}
		case "systemctl start postgresql":
			do = func(string) error { return server.Restart() }
		case "systemctl restart postgresql":
			do = func(string) error { server.Shutdown(); return server.Restart() }
		}
		storetest.Must(t, do(line))
	}
	r := &recipe{run: run, paths: []string{"/etc/postgresql/15/main", server.Folder() + "/etc",
		"/var/lib/postgresql/15/main", server.Folder() + "/data", "/var/lib/postgresql/15", server.Folder(),
		"/archive/", server.Folder() + "/archive/"}}
	for _, file := range []string{"deploy/postgresql/archive.conf", "deploy/postgresql/restore.conf"} {
		here := filepath.Join(server.Folder(), file)
		err := os.MkdirAll(filepath.Dir(here), 0o755)
		if err == nil {
			err = os.WriteFile(here, []byte(strings.NewReplacer(r.paths...).Replace(deployed(t, file))), 0o644)
		}
		storetest.Must(t, err)
	}
	run(t, "mkdir -p etc/conf.d && echo \"include_dir '../etc/conf.d'\" >>data/postgresql.conf")

	clients := p.start(t)
	r.follow(t, "Archive PostgreSQL")
	points := p.instants(t, func() {}, func(time.Time) {})
	p.finish(t, clients)
	for i, point := range points {
		s := p.elsewhere(blackbox.NewSiteOn(t, dsn))
		r.castellan = func(args ...string) blackbox.Output { return s.Command("", args...) }
		r.follow(t, "Restore PostgreSQL", exampleInstant, point.at,
			"/var/lib/postgresql/15/damaged", fmt.Sprint(server.Folder(), "/damaged-", i))
		p.restored(t, s, point.acked)
	}
	r.follow(t, "Continue with a new archive")
	blackbox.Until(t, time.Minute, "the second archive gets the log", func() bool {
		return p.Site.Count("pg_stat_archiver WHERE last_archived_time > COALESCE(last_failed_time, 'epoch')") > 0
	})
}

// instant is a point under load, with what was acknowledged until an earlier one.
type instant struct {
	at    string
	acked []string
	until time.Time
}

// instants returns random ones, not in their order. fail is called before each one. archived returns when the archive
// has what was acknowledged until an instant.
func (p *platform) instants(t *testing.T, fail func(), archived func(until time.Time)) (all []instant) {
	t.Helper()
	for range *restores {
		p.more(t, 5+rand.IntN(20))
		fail()
		point := instant{acked: p.acknowledged(), until: time.Now()}
		p.calm.Store(true)
		archived(point.until)
		p.calm.Store(false)
		p.more(t, rand.IntN(10))
		point.at = time.Now().UTC().Format("2006-01-02T15:04:05.999999-07:00")
		all = append(all, point)
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// The page's recipe for SQLite does the same by Litestream, which copies after the commit. Before each instant
// Litestream and often the service are killed, in any order. While Litestream is down, SQLite overwrites its log.
func TestSQLiteIsRestoredToAnInstant(t *testing.T) {
	t.Parallel()
	program := *litestreamProgram
	if program == "" {
		program = filepath.Join(t.TempDir(), "litestream")
		install := exec.Command("go", "install", "github.com/benbjohnson/litestream/cmd/litestream@"+litestreamVersion)
		install.Env = append(os.Environ(), "GOFLAGS=-trimpath", "CGO_ENABLED=0", "GOBIN="+filepath.Dir(program))
		if out, err := install.CombinedOutput(); err != nil {
			t.Fatalf("build Litestream: %v: %s", err, out)
		}
	}
	p := newPlatform(t, blackbox.NewSite(t, "sqlite").Set("HTTP_ADDR="+porttest.Free(t)))
	dir, data := t.TempDir(), filepath.Dir(strings.TrimPrefix(p.Site.DSN, "sqlite:"))
	settings := filepath.Join(dir, "litestream.yml")
	install := "install -m 644 deploy/litestream.yml " + settings
	unit := deployed(t, "deploy/systemd/litestream.conf")
	started := regexp.MustCompile(`(?m)^ExecStartPre=(.*)$`).FindAllStringSubmatch(unit, -1)
	var service *child.Process
	killed := false
	kill := func() { p.Node.Kill(); killed = true }
	up := func() { // Restart=on-failure
		if killed {
			p.Node, killed = p.Site.Begin(), false
		}
		if p.Node.URL == "" {
			p.Node.Ready()
		}
	}
	r := &recipe{paths: []string{"/var/lib/castellan", data, "/etc/litestream.yml", settings, "/archive/",
		dir + "/archive/", "litestream restore", program + " restore -config " + settings,
		"/etc/systemd", dir, "deploy/systemd", "../../deploy/systemd"}}
	r.run = func(t *testing.T, line string) {
		t.Helper()
		var err error
		switch line {
		case "systemctl stop castellan", "systemctl daemon-reload": // no systemd runs here
		case "systemctl try-restart castellan":
			if !p.Node.Ended() {
				p.Node.Stop()
				p.Node = p.Site.Begin()
			}
		case "sleep 10":
			up()
		case "systemctl stop litestream":
			service.Terminate()
			<-service.Ended()
		case "systemctl enable --now litestream", "systemctl start litestream":
			for _, start := range started {
				r.run(t, start[1])
			}
			cmd := exec.Command(program, "replicate", "-config", settings)
			cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
			service, err = child.Start(cmd)
			up()
		case install:
			text := strings.NewReplacer(r.paths...).Replace(deployed(t, "deploy/litestream.yml"))
			err = os.WriteFile(settings, []byte(text), 0o644)
		default:
			var out []byte
			if out, err = exec.Command("sh", "-c", line).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v: %s", line, err, out)
			}
			if said := strings.TrimSpace(string(out)); said != "" {
				t.Logf("%s: %s", line, said[strings.LastIndexByte(said, '\n')+1:]) // the last file of a restore
			}
		}
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	r.follow(t, "Archive SQLite")
	changes := dir + "/archive/1/ltx/0/*.ltx"
	blackbox.Until(t, time.Minute, "Litestream copies", func() bool { return len(stamps(t, changes)) > 0 })
	clients := p.start(t)
	points := p.instants(t, func() {
		if rand.N(2) == 0 {
			kill()
			up()
		}
		service.Kill()
		p.more(t, 20+rand.IntN(20))
		p.calm.Store(true)                            // so that not all of the log is overwritten
		p.Site.Exec("PRAGMA wal_checkpoint(RESTART)") // as the service does when its log has 16 MiB
		p.more(t, 1)
		if rand.N(2) == 0 {
			kill()
		}
		r.run(t, "systemctl start litestream")
	}, func(until time.Time) {
		// Litestream reads the log and then stamps what it has read. So the first file with a later stamp may have been
		// read before, and the second one was read after.
		blackbox.Until(t, time.Minute, "Litestream copies", func() bool {
			all := stamps(t, changes)
			return len(all) > 1 && all[len(all)-2].After(until)
		})
	})
	p.finish(t, clients)
	for i, point := range points {
		s := p.elsewhere(blackbox.NewSite(t, "sqlite").Set("DATABASE_URL=" + p.Site.DSN))
		s.DSN = p.Site.DSN
		t.Logf("to %s, acknowledged until %s", point.at, point.until.UTC().Format(time.RFC3339Nano))
		r.castellan = func(args ...string) blackbox.Output { return s.Command("", args...) }
		r.run(t, install) // the first folder, if a restore is repeated
		r.follow(t, "Restore SQLite", exampleInstant, point.at, "/archive/2", fmt.Sprint(dir, "/archive/", i+2),
			"/var/lib/castellan/damaged", fmt.Sprint(data, "/damaged-", i))
		p.restored(t, s, point.acked)
	}
}

// stamps returns until when the newest files of Litestream have the changes, in order. A file is complete when it gets
// its name.
func stamps(t *testing.T, pattern string) (all []time.Time) {
	t.Helper()
	names, err := filepath.Glob(pattern) // ordered
	storetest.Must(t, err)
	for _, name := range names[max(0, len(names)-2):] {
		file, err := os.Open(name)
		storetest.Must(t, err)
		var head [40]byte // of the format LTX: the milliseconds begin at 32
		_, err = io.ReadFull(file, head[:])
		storetest.Must(t, errors.Join(err, file.Close()))
		all = append(all, time.UnixMilli(int64(binary.BigEndian.Uint64(head[32:]))))
	}
	return all
}
