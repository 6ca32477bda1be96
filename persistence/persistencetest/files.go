package persistencetest

import (
	"testing"

	"castellan/domain/kit/blob"
	"castellan/domain/kit/storetest"
	"castellan/outbound/folder"
)

// Files returns an empty folder for files that ends with the test.
func Files(t testing.TB) blob.Store {
	t.Helper()
	files := storetest.Value(folder.Open(t.TempDir()))(t)
	t.Cleanup(func() { storetest.Must(t, files.Close()) })
	return files
}

func Kept(t testing.TB, files blob.Store, area string) (keys []string) {
	t.Helper()
	for info, err := range files.List(t.Context(), area) {
		storetest.Must(t, err)
		keys = append(keys, info.Key)
	}
	return keys
}
