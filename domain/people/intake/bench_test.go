package intake_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"runtime"
	"testing"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/intake"
	"castellan/internal/pgtest"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
	"castellan/persistence/proof"
)

var benchUsers = flag.Int("users", 100_000, "users of BenchmarkImport")

// crowd is a file of users that is made while it is read.
type crowd struct {
	n, next int
	buf     bytes.Buffer
}

func (c *crowd) Read(p []byte) (int, error) {
	for ; c.buf.Len() < len(p) && c.next < c.n; c.next++ {
		fmt.Fprintf(&c.buf, `{"externalId":"ext-%d","email":"user%d@example.com","emailVerified":true,"countryCode":"90",`+
			`"phoneNumber":"53%08d","name":"Ada%d","surname":"Lovelace","language":"en","status":"active",`+
			`"hash":"$2b$10$abcdefghijklmnopqrstuuIXYkxgxdZ2hTawHKCAwj.tmZI.Ck6r6"}`+"\n", c.next, c.next, c.next, c.next)
	}
	return c.buf.Read(p)
}

// A million users must take at most ten minutes on two cores. The benchmark reports the time of a user, the minutes
// and the disk of a million, and the heap afterwards, which does not grow with the users.
func BenchmarkImport(b *testing.B) {
	for _, kind := range []struct {
		name string
		dsn  func() string
	}{{"sqlite", func() string { return "sqlite:" + b.TempDir() + "/bench.db" }}, {"postgres", func() string {
		return pgtest.DSN(b)
	}}} {
		size := "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
		if kind.name == "postgres" {
			size = "SELECT pg_database_size(current_database())"
		}
		b.Run(kind.name, func(b *testing.B) {
			for b.Loop() {
				db := persistencetest.OpenWith(b, kind.dsn(), persistence.Options{Patient: true})
				hasher := storetest.Value(password.NewHasher(password.HasherOptions{}))(b)
				s := &intake.Service{Store: people.NewIntake(db), Commit: db, Hasher: hasher, Ring: keyringtest.Ring(b, time.Now),
					Users: account.NewUsers(db), TOTP: proof.NewTOTP(db), Now: time.Now, Statuses: []string{"active"},
					MaxCost: 300_000}
				source := storetest.Value(intake.Open(intake.Castellan, io.Reader(&crowd{n: *benchUsers}), firebase))(b)
				began := time.Now()
				state, err := s.Run(b.Context(), "bench", source, false)
				if err != nil || state.Imported != int64(*benchUsers) {
					b.Fatalf("%+v, %v", state, err)
				}
				took := time.Since(began)
				b.ReportMetric(float64(took.Microseconds())/float64(*benchUsers), "µs/user")
				b.ReportMetric(took.Minutes()*1e6/float64(*benchUsers), "min/million")
				var bytes int64
				storetest.Must(b, db.Conn(b.Context()).NewRaw(size).Scan(b.Context(), &bytes))
				b.ReportMetric(float64(bytes)/1e6/float64(*benchUsers)*1e3, "GB/million")
				var m runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&m)
				b.ReportMetric(float64(m.HeapAlloc)/(1<<20), "MiB")
			}
		})
	}
}
