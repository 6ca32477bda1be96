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
		storetest.Fails(t, storetest.Err(s.Stat(t.Context(), key)), "", key, "is found")
	}
	storetest.Fails(t, s.Put(t.Context(), "dir/x", []byte("x")), "", "put through a link")
	storetest.Must(t, s.Put(t.Context(), "link", []byte("x"))) // replaces the link
	storetest.Equal(t, string(storetest.Value(os.ReadFile(outside))(t)), "secret", "outside")
	for info, err := range s.List(t.Context(), "dir") {
		storetest.Fails(t, err, "", "listed", info)
	}
}

// A failed Put leaves the folder unchanged.
func TestFailedPut(t *testing.T) {
	s := open(t)
	storetest.Must(t, s.Put(t.Context(), "document/x", []byte("old")))
	storetest.Must(t, os.Mkdir(filepath.Join(s.root.Name(), "document", "y"), 0o700))
	storetest.Fails(t, s.Put(t.Context(), "document/y", []byte("a folder is there")), "", "put over a folder")
	storetest.Fails(t, s.Put(t.Context(), "document/x/y", []byte("a file is there")), "", "put below a file")
	storetest.Equal(t, len(storetest.Value(os.ReadDir(filepath.Join(s.root.Name(), blob.Temporary)))(t)), 0, "left")
}
