// Package geoip tells in which country an address lies (geo.Locator): by the
// table that the program carries (Embedded), or by a file in MaxMind's format
// that the operator keeps up to date (File), which is read again when it
// changes.
//
// The embedded table is that of phuslu/iploc: this product includes IP2Location
// LITE data available from https://lite.ip2location.com.
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
	"github.com/phuslu/iploc"

	"castellan/domain/kit/geo"
)

// Embedded is the table in the program. The part for IPv6 is unpacked when it
// is first asked.
type Embedded struct{}

var _ geo.Locator = Embedded{}

func (Embedded) Country(a netip.Addr) string {
	if !public(a) {
		return ""
	}
	if c := iploc.IPCountry(a); geo.Assigned(c) {
		return c
	}
	return ""
}

// public leaves out what no table can know; the embedded one must not be asked
// about an address below its first entry.
func public(a netip.Addr) bool {
	return a.IsGlobalUnicast() && !a.IsPrivate()
}

// File is a database in MaxMind's format. It is held in memory as a whole, so
// that writing over the file harms nobody.
type File struct {
	path    string
	mu      sync.Mutex // of Refresh
	stamp   stamp      // of what was read last, good or bad
	current atomic.Pointer[database]
}

var _ geo.Locator = (*File)(nil)

type stamp struct {
	size     int64
	modified time.Time
}

// database is one reading of the file. Records are shared by many networks, so
// the codes of those that were asked for are kept by their place.
type database struct {
	reader *maxminddb.Reader
	codes  sync.Map // uintptr → string
	kept   atomic.Int32
}

// maxKept bounds what is kept of a database whose records are not of countries
// but of smaller places.
const maxKept = 4096

// Open reads a file; an error names it.
func Open(path string) (*File, error) {
	f := &File{path: path}
	if _, err := f.Refresh(); err != nil {
		return nil, err
	}
	return f, nil
}

// Refresh reads the file again if it is not as it was. When that fails the
// answers stay those of the last good file, and the error is returned once for
// each version of the file.
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
		f.stamp = stamp{} // it is tried again
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

// sound walks all networks, so that a file cut off in the middle is refused as
// a whole. The library's own check is stricter than the files that are about:
// it wants a description.
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

// decode reads a record in either of the usual shapes: country.iso_code, or
// country_code. The country of the registration is not where an address is.
func decode(found maxminddb.Result) string {
	for _, path := range [][]any{{"country", "iso_code"}, {"country_code"}} {
		var code string
		if found.DecodePath(&code, path...) == nil && geo.Assigned(code) {
			return code
		}
	}
	return ""
}
