package blob_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/blob"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/persistence/persistencetest"
)

// A key has segments of plain characters that name no device and no hidden file on any system.
func TestValid(t *testing.T) {
	long := strings.Repeat("x", 200)
	for key, want := range map[string]bool{
		"a": true, "a/b.pdf": true, "A-Z_09/az.": false, "": false, "/a": false, "a/": false, "a//b": false,
		".a": false, "a/..": false, "a.": false, "a b": false, "ü": false, "a\\b": false, "a:b": false,
		"az/AZ/09/._": false, "az/AZ/09/a._-b": true, "`": false, "{": false, "@": false, "[": false,
		long: true, long + "x": false,
		long + "/" + long + "/" + strings.Repeat("x", 110): true, long + "/" + long + "/" + strings.Repeat("x", 111): false,
		"con": false, "CON.txt": false, "prn": false, "aux": false, "nul.tar.gz": false, "cona": true,
		"com0": false, "COM9.x": false, "lpt5": false, "com": true, "coma": true, "com10": true, "xcom1": true, "lpx1": true,
		"com/": false, "com:": false,
	} {
		storetest.Equal(t, blob.Valid(key), want, key, len(key))
	}
}

// A generated key is valid, spreads over two folders, and is recognised.
func TestNewKey(t *testing.T) {
	key := blob.NewKey("public/announcement", ".png", time.UnixMilli(1_700_000_000_000))
	part := strings.Split(key, "/")
	if !blob.Valid(key) || len(part) != 5 || len(part[2]) != 2 || len(part[3]) != 2 || !blob.Generated(key) ||
		!strings.HasSuffix(part[4], part[3]+part[2]+".png") || key == blob.NewKey("public/announcement", ".png", time.Now()) {
		t.Error(key)
	}
	name := part[4]
	for _, other := range []string{name, "public/" + name, "public/" + part[3] + "/" + part[2] + "/" + name,
		strings.Replace(key, ".png", "X.png", 1), "public/a.png"} {
		storetest.Equal(t, blob.Generated(other), false, other, "was taken for a generated key")
	}
	if got := blob.PublicPath(blob.PublicKey("a/b.png")); got != "a/b.png" || blob.PublicKey("a") != "public/a" {
		t.Error(got)
	}
}

// A file is read as a whole, up to its bound.
func TestRead(t *testing.T) {
	files, ctx := persistencetest.Files(t), t.Context()
	storetest.Must(t, files.Put(ctx, "a/b", []byte("12345")))
	storetest.Equal(t, string(storetest.Value(blob.Read(ctx, files, "a/b", 5))(t)), "12345")
	if got, err := blob.Read(ctx, files, "a/b", 4); err == nil || got != nil {
		t.Errorf("over the bound: %q, %v", got, err)
	}
	if got, err := blob.Read(ctx, files, "a/c", 5); !errors.Is(err, blob.ErrNotFound) || got != nil {
		t.Errorf("a missing file: %q, %v", got, err)
	}
}

// An adapter that fails answers UNAVAILABLE and keeps the cause for the log.
func TestFailed(t *testing.T) {
	cause := errors.New("disk full")
	err := blob.Failed("write", cause)
	var f *fault.Error
	if !errors.Is(err, cause) || !errors.As(err, &f) || f.Code != fault.Unavailable || f.RetryAfter != time.Second {
		t.Error(err)
	}
}

// The sweeper removes files that no row names once they are an hour old, and temporary ones.
func TestSweep(t *testing.T) {
	files, ctx := persistencetest.Files(t), t.Context()
	for _, key := range []string{"doc/named", "doc/lost", "tmp/x", "other/y"} {
		storetest.Must(t, files.Put(ctx, key, []byte("x")))
	}
	info := storetest.Value(files.Stat(ctx, "doc/lost"))(t)
	owners := []blob.Owner{{Area: "doc", ReferencedKeys: func(_ context.Context, keys []string) ([]string, error) {
		return slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return key != "doc/named" }), nil
	}}}
	storetest.Equal(t, storetest.Value(blob.Sweep(ctx, files, owners, info.Modified.Add(blob.SweepAfter/2)))(t), 0)
	later := info.Modified.Add(2 * blob.SweepAfter)
	broken := []blob.Owner{{Area: "doc", ReferencedKeys: func(context.Context, []string) ([]string, error) {
		return nil, errors.New("the database is down")
	}}}
	if n, err := blob.Sweep(ctx, files, broken, later); n != 1 || err == nil {
		t.Errorf("an owner that cannot be asked: %d removed, %v", n, err)
	}
	storetest.Equal(t, storetest.Value(blob.Sweep(ctx, files, owners, later))(t), 1)
	for key, want := range map[string]bool{"doc/named": true, "doc/lost": false, "tmp/x": false, "other/y": true} {
		storetest.Equal(t, storetest.Err(files.Stat(ctx, key)) == nil, want, key)
	}
}

// More files than one question may name are removed in parts.
func TestSweepOfManyFiles(t *testing.T) {
	files, ctx := persistencetest.Files(t), t.Context()
	const n = 401
	for i := range n {
		storetest.Must(t, files.Put(ctx, blob.NewKey("doc", "", time.UnixMilli(int64(i))), nil))
	}
	var asked []int
	owners := []blob.Owner{{Area: "doc", ReferencedKeys: func(_ context.Context, keys []string) ([]string, error) {
		asked = append(asked, len(keys))
		return nil, nil
	}}}
	if got, err := blob.Sweep(ctx, files, owners, time.Now().Add(2*blob.SweepAfter)); got != n || err != nil ||
		!slices.Equal(asked, []int{200, 200, 1}) {
		t.Errorf("%d, %v, asked for %v", got, err, asked)
	}
}

// Replaced files are removed after the commit; a file that is still used, and "", are not.
func TestReplaced(t *testing.T) {
	files := persistencetest.Files(t)
	for _, key := range []string{"a/old", "a/kept"} {
		storetest.Must(t, files.Put(t.Context(), key, []byte("x")))
	}
	ctx, committed := commit.Hooks(t.Context())
	blob.Replaced(ctx, files, []string{"a/old", "a/kept", ""}, []string{"a/kept"})
	storetest.Value(files.Stat(t.Context(), "a/old"))(t)
	committed()
	for key, want := range map[string]bool{"a/old": false, "a/kept": true} {
		storetest.Equal(t, storetest.Err(files.Stat(t.Context(), key)) == nil, want, key)
	}
}
