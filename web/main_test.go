package web_test

import (
	"os"
	"testing"

	"castellan/web/webtest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	webtest.Close()
	os.Exit(code)
}
