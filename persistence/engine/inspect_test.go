package engine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"castellan/domain/kit/storetest"
)

// A database that is opened read-only must exist. It is read, never written, and no file appears beside it.
func TestOpenSQLiteReadOnly(t *testing.T) {
	file := filepath.Join(t.TempDir(), "folder", "test.db")
	_, err := Open(t.Context(), "sqlite:"+file, noteKinds, Options{ReadOnly: true})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := os.Stat(filepath.Dir(file)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its folder: %v", err)
	}
	storetest.Must(t, os.Mkdir(filepath.Dir(file), 0o700))
	written, err := Open(t.Context(), "sqlite:"+file, noteKinds, Options{})
	storetest.Must(t, err)
	_, err = written.Migrate(t.Context(), noteSchema)
	storetest.Must(t, err)
	written.Start(func(int) State { return nil })
	storetest.Must(t, written.Commit(t.Context(), addNote{ID: "n1", Text: "text"}))
	check := func(what string) {
		t.Helper()
		db, err := Open(t.Context(), "sqlite:"+file, noteKinds, Options{ReadOnly: true})
		storetest.Must(t, err)
		defer db.Close()
		var text string
		err = db.Conn(t.Context()).NewSelect().Table("note").Column("text").Where("id = 'n1'").Scan(t.Context(), &text)
		if err != nil || text != "text" {
			t.Errorf("%s: %q, %v", what, text, err)
		}
		if err := db.InTx(t.Context(), func(ctx context.Context) error {
			_, err := db.Conn(ctx).ExecContext(ctx, "DELETE FROM note")
			return err
		}); err == nil {
			t.Errorf("%s: a write is possible", what)
		}
		pending, err := db.Pending(t.Context(), noteSchema)
		if err != nil || len(pending) != 0 {
			t.Errorf("%s: %q are pending, %v", what, pending, err)
		}
	}
	check("beside a writer")
	storetest.Must(t, written.Close())
	files := func() (names []string) {
		entries, err := os.ReadDir(filepath.Dir(file))
		storetest.Must(t, err)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	before := files()
	check("alone")
	if after := files(); !slices.Equal(after, before) {
		t.Errorf("%q, before %q", after, before)
	}
}

// A database without tables lacks all migrations. Facts report whether it can be written.
func TestPendingAndFacts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "test.db")
	db, err := Open(t.Context(), "sqlite:"+file, noteKinds, Options{})
	storetest.Must(t, err)
	defer db.Close()
	pending, err := db.Pending(t.Context(), noteSchema)
	if err != nil || !slices.Equal(pending, []string{"0001.sql"}) {
		t.Errorf("%q, %v", pending, err)
	}
	if f, err := db.Facts(t.Context()); err != nil || f.ReadOnly || !f.Now.IsZero() || f.Lossy != nil {
		t.Errorf("%+v, %v", f, err)
	}
	db.file = filepath.Dir(file) // a folder cannot be written
	if f, err := db.Facts(t.Context()); err != nil || !f.ReadOnly {
		t.Errorf("%+v, %v", f, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := db.Pending(ended, noteSchema); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
