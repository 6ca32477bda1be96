// Package geoip finds the country of an address (geo.Locator). It uses the table in the program (Embedded), or a file
// in MaxMind's format that the operator updates (File), which is read again when it changes.
//
// The embedded table is made from the data of phuslu/iploc by tools/countries: this product includes IP2Location LITE
// data available from https://lite.ip2location.com (LICENSE in this folder).
//
// Start reading at Embedded and Open.
package geoip

import (
	"fmt"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oschwald/maxminddb-golang/v2"

	"castellan/domain/kit/geo"
)

// Embedded is the table in the program.
type Embedded struct{}

var _ geo.Locator = Embedded{}

func (Embedded) Country(a netip.Addr) string {
	if !public(a) {
		return ""
	}
	if c := country(a); geo.Assigned(c) {
		return c
	}
	return ""
}

// public excludes addresses that are in no table.
func public(a netip.Addr) bool {
	return a.IsGlobalUnicast() && !a.IsPrivate()
}

// File is a database in MaxMind's format. It is held completely in memory, so overwriting the file is safe.
type File struct {
	path    string
	mu      sync.Mutex // of Refresh
	stamp   stamp      // of the last file read, valid or not
	current atomic.Pointer[database]
}

var _ geo.Locator = (*File)(nil)

type stamp struct {
	size     int64
	modified time.Time
}

// database is one loaded version of the file. Many networks share a record, so the decoded codes are cached by the
// record's offset.
type database struct {
	reader *maxminddb.Reader
	codes  sync.Map // uintptr → string
	kept   atomic.Int32
}

// maxKept bounds the cache for a database whose records describe smaller places than countries.
const maxKept = 4096

// Open reads a file; an error names it.
func Open(path string) (*File, error) {
	f := &File{path: path}
	if _, err := f.Refresh(); err != nil {
		return nil, err
	}
	return f, nil
}

// Refresh reads the file again if it has changed. After an error the answers stay those of the last valid file, and the
// error is returned once for each version of the file.
func (f *File) Refresh() (changed bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := os.Stat(f.path)
	if err != nil {
		return false, fmt.Errorf("geoip: %w", err)
	}
	now := stamp{info.Size(), info.ModTime()}
	if now == f.stamp {
		return false, nil
	}
	f.stamp = now
	content, err := os.ReadFile(f.path)
	if err != nil {
		f.stamp = stamp{} // it is retried
		return false, fmt.Errorf("geoip: %w", err)
	}
	r, err := maxminddb.OpenBytes(content)
	if err != nil {
		return false, fmt.Errorf("geoip: %s: %w", f.path, err)
	}
	if err := sound(r); err != nil {
		return false, fmt.Errorf("geoip: %s: %w", f.path, err)
	}
	f.current.Store(&database{reader: r})
	return true, nil
}

// sound walks all networks, so that a truncated file is refused completely. The library's own check is stricter than
// the files in use: it requires a description.
func sound(r *maxminddb.Reader) error {
	for n := range r.Networks() {
		if err := n.Err(); err != nil {
			return err
		}
	}
	return nil
}

func (f *File) Country(a netip.Addr) string {
	if !public(a) {
		return ""
	}
	return f.current.Load().country(a)
}

func (d *database) country(a netip.Addr) string {
	found := d.reader.Lookup(a)
	if found.Err() != nil || !found.Found() {
		return ""
	}
	if code, ok := d.codes.Load(found.Offset()); ok {
		return code.(string)
	}
	code := decode(found)
	if d.kept.Add(1) <= maxKept {
		d.codes.Store(found.Offset(), code)
	}
	return code
}

// decode reads a record in either of the usual shapes: country.iso_code, or country_code. The country of registration
// is not used, because it is not the location of an address.
func decode(found maxminddb.Result) string {
	for _, path := range [][]any{{"country", "iso_code"}, {"country_code"}} {
		var code string
		if found.DecodePath(&code, path...) == nil && geo.Assigned(code) {
			return code
		}
	}
	return ""
}
