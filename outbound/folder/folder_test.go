package folder

import (
	"os"
	"path/filepath"
	"testing"

	"castellan/domain/kit/blob"
	"castellan/domain/kit/blob/blobtest"
	"castellan/domain/kit/storetest"
)

func open(t *testing.T) *Store {
	t.Helper()
	s := storetest.Value(Open(filepath.Join(t.TempDir(), "files")))(t)
	t.Cleanup(func() { storetest.Must(t, s.Close()) })
	return s
}

func TestStore(t *testing.T) {
	blobtest.Run(t, func(t *testing.T) blob.Store { return open(t) })
}

// A link in the folder does not lead out of it.
func TestLinks(t *testing.T) {
	s := open(t)
	outside := filepath.Join(t.TempDir(), "secret")
	storetest.Must(t, os.WriteFile(outside, []byte("secret"), 0o600))
	storetest.Must(t, os.Symlink(outside, filepath.Join(s.root.Name(), "link")))
	storetest.Must(t, os.Symlink(filepath.Dir(outside), filepath.Join(s.root.Name(), "dir")))
	for _, key := range []string{"link", "dir/secret"} {
		if f, err := s.Get(t.Context(), key); err == nil {
			t.Errorf("%s leads to %+v", key, f.Info)
		}
		if _, err := s.Stat(t.Context(), key); err == nil {
			t.Errorf("%s is found", key)
		}
	}
	if err := s.Put(t.Context(), "dir/x", []byte("x")); err == nil {
		t.Error("put through a link")
	}
	storetest.Must(t, s.Put(t.Context(), "link", []byte("x"))) // replaces the link
	if got, err := os.ReadFile(outside); string(got) != "secret" || err != nil {
		t.Errorf("outside: %q %v", got, err)
	}
	for info, err := range s.List(t.Context(), "dir") {
		if err == nil {
			t.Errorf("listed %v", info)
		}
	}
}

// A failed Put leaves the folder unchanged.
func TestFailedPut(t *testing.T) {
	s := open(t)
	storetest.Must(t, s.Put(t.Context(), "document/x", []byte("old")))
	storetest.Must(t, os.Mkdir(filepath.Join(s.root.Name(), "document", "y"), 0o700))
	if err := s.Put(t.Context(), "document/y", []byte("a folder is there")); err == nil {
		t.Error("put over a folder")
	}
	if err := s.Put(t.Context(), "document/x/y", []byte("a file is there")); err == nil {
		t.Error("put below a file")
	}
	left, err := os.ReadDir(filepath.Join(s.root.Name(), blob.Temporary))
	if err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
