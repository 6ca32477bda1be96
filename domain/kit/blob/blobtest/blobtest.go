// Package blobtest is the contract of blob.Store as tests. Every adapter runs it.
package blobtest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/kit/blob"
	"castellan/domain/kit/storetest"
)

// Run checks an implementation; open returns an empty store that ends with the test.
func Run(t *testing.T, open func(t *testing.T) blob.Store) {
	for name, test := range map[string]func(t *testing.T, s blob.Store){
		"RoundTrip": roundTrip, "List": list, "NoKeys": noKeys, "Seek": seek, "Overwrite": overwrite,
		"Race": race, "Sweep": sweep,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func put(t *testing.T, s blob.Store, key, content string) {
	t.Helper()
	storetest.Must(t, s.Put(t.Context(), key, []byte(content)))
}

func get(t *testing.T, s blob.Store, key string) string {
	t.Helper()
	content := storetest.Value(blob.Read(t.Context(), s, key, 1<<20))(t)
	return string(content)
}

func gone(t *testing.T, s blob.Store, key string) {
	t.Helper()
	if f, err := s.Get(t.Context(), key); err != blob.ErrNotFound {
		t.Errorf("get %.60q: %v %v", key, f.Info, err)
	}
	if info, err := s.Stat(t.Context(), key); err != blob.ErrNotFound {
		t.Errorf("stat %.60q: %v %v", key, info, err)
	}
}

func roundTrip(t *testing.T, s blob.Store) {
	began := time.Now()
	key := blob.NewKey("document", ".bin", began)
	gone(t, s, key)
	put(t, s, key, "bytes\x00\xff")
	storetest.Equal(t, get(t, s, key), "bytes\x00\xff")
	info := storetest.Value(s.Stat(t.Context(), key))(t)
	// The clock of another machine may have stamped it, in whole seconds.
	if info.Key != key || info.Size != 7 || info.Modified.Sub(began).Abs() > time.Minute || info.Version == "" {
		t.Errorf("%+v", info)
	}
	f := storetest.Value(s.Get(t.Context(), key))(t)
	storetest.Must(t, f.Close())
	if f.Info.Version != info.Version || f.Info.Size != 7 || f.Info.Key != key {
		t.Errorf("got %+v, stat %+v", f.Info, info)
	}
	storetest.Fails(t, storetest.Err(blob.Read(t.Context(), s, key, 6)), "", "a file beyond the limit was read")
	gone(t, s, "document")           // a folder is not a file
	gone(t, s, key+"/further")       // and a file is not a folder
	gone(t, s, key[:len(key)-1])     // a part of a name
	gone(t, s, strings.ToLower(key)) // names are exact
	for range 2 {
		storetest.Must(t, s.Delete(t.Context(), key))
		gone(t, s, key)
	}
	put(t, s, "document/empty", "")
	storetest.Equal(t, get(t, s, "document/empty"), "")
}

func list(t *testing.T, s blob.Store) {
	want := map[string]int64{}
	for i := range 30 {
		key := blob.NewKey("document", "", time.Now())
		put(t, s, key, strings.Repeat("x", i))
		want[key] = int64(i)
	}
	put(t, s, "documents/other", "o")
	put(t, s, "other/document/x", "o")
	got := map[string]int64{}
	for info, err := range s.List(t.Context(), "document") {
		storetest.Must(t, err)
		if got[info.Key] = info.Size; info.Modified.IsZero() || info.Version == "" {
			t.Errorf("%+v", info)
		}
	}
	storetest.Same(t, got, want)
	for range s.List(t.Context(), "document") {
		break // the remaining entries are not requested
	}
	for info, err := range s.List(t.Context(), "nothing") {
		t.Errorf("%v %v", info, err)
	}
	all := 0
	for info, err := range s.List(t.Context(), blob.All) {
		storetest.Must(t, err)
		if all++; info.Key != "documents/other" && info.Key != "other/document/x" && !blob.Generated(info.Key) {
			t.Errorf("all files include %q", info.Key)
		}
	}
	storetest.Equal(t, all, len(want)+2)
}

// noKeys are rejected everywhere, and reach no file.
func noKeys(t *testing.T, s blob.Store) {
	put(t, s, "document/x", "x")
	for _, key := range Hostile {
		if blob.Valid(key) {
			t.Errorf("%.60q is valid", key)
		}
		storetest.Fails(t, s.Put(t.Context(), key, []byte("y")), "", key)
		gone(t, s, key)
		storetest.Must(t, s.Delete(t.Context(), key))
		for info, err := range s.List(t.Context(), key) {
			t.Errorf("%.60q lists %v %v", key, info, err)
		}
	}
	storetest.Equal(t, get(t, s, "document/x"), "x")
}

// Hostile are texts that are not valid keys.
var Hostile = []string{
	"", "/", ".", "..", "../x", "../../etc/passwd", "/etc/passwd", "document/../document/x", "document//x", "document/",
	"/document/x", "document/./x", "document/..", "document/.x", ".tmp/x", "document\\x", "document/x\x00", "\x00",
	"document/%2e%2e/x", "%2e%2e/x", "document/x%00", "document/ü", "document/a b", "document/x\n", "document/x:y",
	"CON", "document/nul", "document/NUL.txt", "document/com1", "document/LPT9.png", "aux.h", "document/x.",
	strings.Repeat("x", 4096), "document/" + strings.Repeat("x", 201), strings.Repeat("a/", 300) + "x",
	"document/\u202egnp.exe", "~/x", "document/$(x)", "C:/x", `\\host\share`, "document/x?y", "document/*",
}

func seek(t *testing.T, s blob.Store) {
	put(t, s, "document/x", "0123456789")
	f := storetest.Value(s.Get(t.Context(), "document/x"))(t)
	defer f.Close()
	storetest.Must(t, storetest.Err(f.Seek(4, io.SeekStart)))
	part := make([]byte, 3)
	storetest.Must(t, storetest.Err(io.ReadFull(f, part)))
	storetest.Equal(t, string(part), "456", part)
}

func overwrite(t *testing.T, s blob.Store) {
	put(t, s, "public/upload/logo.png", "old")
	before := storetest.Value(s.Stat(t.Context(), "public/upload/logo.png"))(t)
	put(t, s, "public/upload/logo.png", "new")
	after := storetest.Value(s.Stat(t.Context(), "public/upload/logo.png"))(t)
	if got := get(t, s, "public/upload/logo.png"); got != "new" || before.Version == after.Version {
		t.Errorf("got %q, versions %s and %s", got, before.Version, after.Version)
	}
}

// race writes one key from eight goroutines: readers always see one complete text.
func race(t *testing.T, s blob.Store) {
	text := func(i int) string { return strings.Repeat(fmt.Sprint(i), 10_000) }
	put(t, s, "document/x", text(0))
	whole := map[string]bool{text(0): true}
	for i := range 8 {
		whole[text(i)] = true
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			storetest.Is(t, s.Put(t.Context(), "document/x", []byte(text(i))), nil)
			f, err := s.Get(t.Context(), "document/x")
			if err != nil {
				t.Error(err)
				return
			}
			defer f.Close()
			if got, err := io.ReadAll(f); err != nil || !whole[string(got)] {
				t.Errorf("%d bytes that no writer wrote completely: %.20q, %v", len(got), bytes.TrimSpace(got), err)
			}
		})
	}
	wg.Wait()
}

// sweep removes the files that no row names, and nothing else.
func sweep(t *testing.T, s blob.Store) {
	keys := make([]string, 5)
	for i := range keys {
		keys[i] = blob.NewKey("document", "", time.Now())
		put(t, s, keys[i], "x")
	}
	put(t, s, blob.Temporary+"/left", "x")
	put(t, s, "public/upload/logo.png", "x")
	owners := []blob.Owner{{Area: "document", ReferencedKeys: func(_ context.Context, asked []string) ([]string, error) {
		return slices.DeleteFunc(slices.Clone(asked), func(k string) bool { return k == keys[1] }), nil
	}}}
	n := storetest.Value(blob.Sweep(t.Context(), s, owners, time.Now()))(t)
	storetest.Equal(t, n, 0)
	n = storetest.Value(blob.Sweep(t.Context(), s, owners, time.Now().Add(blob.SweepAfter+time.Minute)))(t)
	storetest.Equal(t, n, 2)
	gone(t, s, keys[1])
	gone(t, s, blob.Temporary+"/left")
	for _, key := range append(slices.Delete(keys, 1, 2), "public/upload/logo.png") {
		get(t, s, key)
	}
}
