package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"castellan/cluster"
	"castellan/cmd/app/adapters"
	"castellan/domain/account/password/argon2id"
	"castellan/domain/kit/blob"
	"castellan/domain/kit/id"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/setup"
	"castellan/persistence"
	"castellan/persistence/kit"
)

const (
	// maxClockSkew is the permitted difference between the clocks of the database and of this machine.
	maxClockSkew = 2 * time.Second
	// minFreeBytes is the free space below which a disk is nearly full.
	minFreeBytes = 1 << 30
	// certificateWarning is how long before its expiry a certificate is reported, as in the logs of nodes.
	certificateWarning = 30 * 24 * time.Hour
)

// firstSane and lastSane bound the present: a clock outside is wrong.
var (
	firstSane = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	lastSane  = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
)

// stored are the checks of the database.
func (d Doctor) stored() []probe {
	reach := probe{"database.url", "the service does not start", "start the database, or fix database.url",
		func(ctx context.Context) (string, error) {
			if d.opened != nil {
				return "", d.opened
			}
			return d.cfg.Database.Redacted() + " answers", d.db.Ping(ctx)
		}}
	if d.absent() {
		reach = probe{"database.url", "nothing is stored, and the parameters have their initial values",
			"run castellan migrate or castellan serve, which creates it",
			func(context.Context) (string, error) { return "", errors.New("there is no database yet") }}
	}
	if d.db == nil {
		return []probe{reach}
	}
	return append([]probe{reach,
		{"database schema", "this version does not work with it", "run castellan migrate",
			func(ctx context.Context) (string, error) {
				pending, err := persistence.Pending(ctx, d.db)
				if err == nil && len(pending) > 0 {
					err = fmt.Errorf("%d migrations are missing, from %s", len(pending), pending[0])
				}
				return "up to date", err
			}},
		{"database writes", "nothing can be stored", "grant the service write access, on the primary server",
			func(ctx context.Context) (string, error) {
				facts, err := d.db.Facts(ctx)
				if err == nil && facts.ReadOnly {
					err = errors.New("the database is read-only")
				}
				return "writable", err
			}},
		{"database durability", "the settings cannot be read", "query the server: SHOW fsync",
			func(ctx context.Context) (string, error) {
				facts, err := d.db.Facts(ctx)
				if err == nil && len(facts.Lossy) > 0 {
					err = shortcoming{Severity: setup.Control, State: strings.Join(facts.Lossy, " and ") + " off",
						Effect: "a crash of the server loses acknowledged commits", Mend: "enable it in postgresql.conf"}
				}
				return "commits are flushed to the disk", err
			}},
	}, d.spellings()...)
}

// machine are the checks of this machine: its clock, its disk and its files.
func (d Doctor) machine() []probe {
	c := d.cfg
	all := []probe{
		{"clock", "tokens and one-time codes are checked against the wrong time", "synchronize the clock, such as with NTP",
			d.clock},
		{"data_dir", "the disk is nearly full; then nothing can be stored", "free space",
			func(context.Context) (string, error) { return free(c.DataDir) }},
		vectors(argon2id.Vectors()),
		{"keys.master_file", "the service does not start",
			"restore the file, or create it for a new installation: umask 077; openssl rand -base64 32 > FILE", d.masterKey},
	}
	files := probe{"files.folder", "documents and pictures cannot be stored", "fix the folder, or files.folder", d.files}
	if c.Files.S3URL != "" {
		files.key, files.mend = "files.s3_url", "fix the bucket, or the settings files.s3_*"
	}
	all = append(all, files)
	if c.Cluster.TLSDir != "" {
		all = append(all, probe{"cluster.tls_dir", "this node cannot join the cluster",
			"run castellan cluster renew, and copy the files to the node", func(context.Context) (string, error) {
				if _, err := cluster.LoadKeys(c.Cluster.TLSDir); err != nil {
					return "", err
				}
				_, name, ends, err := cluster.Certificate(c.Cluster.TLSDir)
				day := ends.UTC().Format(time.DateOnly)
				if left := time.Until(ends); err == nil && left < certificateWarning {
					err = fmt.Errorf("the certificate of %s ends %s", name, day)
				}
				return "the certificate of " + name + " ends " + day, err
			}})
	}
	return all
}

// clock compares the clocks of this machine and of the database.
func (d Doctor) clock(ctx context.Context) (string, error) {
	now := time.Now()
	if now.Before(firstSane) || now.After(lastSane) {
		return "", fmt.Errorf("this machine says %s", now.UTC().Format(time.RFC3339))
	}
	if d.db == nil || !d.db.Postgres() {
		return "plausible", nil
	}
	before := time.Now()
	facts, err := d.db.Facts(ctx)
	if err != nil {
		return "", err
	}
	// The server read its clock between the two instants.
	after := time.Now()
	skew := max(facts.Now.Sub(after), before.Sub(facts.Now), 0)
	if skew > maxClockSkew {
		return "", fmt.Errorf("the clock of the database differs by %v", skew.Round(time.Millisecond))
	}
	return "the clock of the database agrees", nil
}

// unstarted reports whether no service was ever started on the database: its first start creates keys and folders.
func (d Doctor) unstarted(ctx context.Context) bool {
	if d.db == nil {
		return d.absent()
	}
	pending, err := persistence.Pending(ctx, d.db)
	if err == nil && slices.Contains(pending, "0001_core.sql") {
		return true
	}
	keys, err := kit.NewKeys(d.db).Keys(ctx)
	return err == nil && len(keys) == 0
}

// vectors checks the instructions that password hashes use.
func vectors(use string) probe {
	return probe{key: "password hash", run: func(context.Context) (string, error) {
		if use == "go" {
			return "", shortcoming{Severity: setup.Feature, State: "argon2id without AVX2",
				Effect: "this machine serves about a quarter of the logins of one with AVX2",
				Mend:   "use a processor or a virtual machine with AVX2, and then run castellan password calibrate"}
		}
		return "argon2id with " + use, nil
	}}
}

// masterKey reads the file of the master key.
func (d Doctor) masterKey(ctx context.Context) (string, error) {
	file := d.cfg.Keys.MasterFile
	_, err := keyring.ReadMaster(file)
	_, embedded := d.cfg.Database.SQLitePath()
	if errors.Is(err, fs.ErrNotExist) && (embedded || d.cfg.Dev) && d.unstarted(ctx) {
		return "created at the first start", nil
	}
	return "readable only by its owner", err
}

// probePrefix begins the key of the object that a check of the files writes; no row names it.
const probePrefix = "setup-probe-"

// files writes an object, reads it and deletes it.
func (d Doctor) files(ctx context.Context) (string, error) {
	c := d.cfg.Files
	if c.S3URL == "" {
		if _, err := os.Stat(c.Folder); errors.Is(err, fs.ErrNotExist) && d.unstarted(ctx) {
			return "created at the first start", nil
		} else if err != nil {
			return "", err
		}
	}
	store, err := adapters.Files(c)
	if err != nil {
		return "", err
	}
	if closes, ok := store.(interface{ Close() error }); ok {
		defer closes.Close()
	}
	key, content := probePrefix+id.New(time.Now()), []byte("castellan doctor")
	if err := store.Put(ctx, key, content); err != nil {
		return "", err
	}
	got, err := blob.Read(ctx, store, key, int64(len(content)))
	if err == nil && !bytes.Equal(got, content) {
		err = errors.New("the object that was read differs from the one that was written")
	}
	// The object is deleted even if the check has timed out.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	return "an object was written, read and deleted", errors.Join(err, store.Delete(last, key))
}

// free returns the free space of the disk that holds a folder, or will hold it.
func free(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return "", err
	}
	n := uint64(disk.Bavail) * uint64(disk.Bsize)
	state := fmt.Sprintf("%.1f GiB free", float64(n)/(1<<30))
	if n < minFreeBytes {
		return "", errors.New(state)
	}
	return state, nil
}
