package webtest

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"unicode/utf8"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Press presses keys, one after the other, wherever the focus is. "\r" is Enter.
func (tab *Tab) Press(keys string) {
	tab.t.Helper()
	tab.effort.Keys += utf8.RuneCountInString(keys)
	tab.do("press "+keys, chromedp.KeyEvent(keys))
}

// Memory returns the page's memory after garbage collection, in bytes: objects, elements, and the buffers behind them.
func (tab *Tab) Memory() int {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, stepTimeout)
	defer cancel()
	if _, err := chromedp.Call(ctx, heapprofiler.CollectGarbage, cdp.Empty{}); err != nil {
		tab.fail("collect garbage", err)
	}
	used, err := chromedp.Call(ctx, runtime.GetHeapUsage, cdp.Empty{})
	if err != nil {
		tab.fail("read the use of memory", err)
	}
	return int(used.UsedSize + used.EmbedderHeapUsedSize + used.BackingStorageSize)
}

// OnDisk returns the files in the browser's profile that contain one of the texts.
func (tab *Tab) OnDisk(texts ...[]byte) (found []string) {
	tab.t.Helper()
	files := 0
	err := filepath.WalkDir(tab.profile, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // it was removed in the meantime
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return nil
		}
		files++
		for _, text := range texts {
			if bytes.Contains(content, text) {
				found = append(found, path)
			}
		}
		return nil
	})
	if err != nil || files == 0 {
		tab.t.Errorf("%d files were looked at, %v", files, err)
	}
	return found
}
