// Package cdn stores the pictures that administrators upload under a chosen name, for pages and apps to show (section
// 4.10 of the interface, decision D-ADM-06).
//
// The one idea: only pixels are public. A picture is encoded again before it is stored (domain/kit/picture). Its
// address consists of a folder of the parameter CDN and the harmless characters of the sent name.
//
// Start reading at Service.Upload.
package cdn

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/blob"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/picture"
)

// ActionUpload is the audit name of an upload.
const ActionUpload = "CDN_UPLOAD"

const (
	// folder holds files uploaded by name, so that no name collides with a file made by a slice.
	folder       = "upload"
	maxNameChars = 100
)

// Service stores uploads.
type Service struct {
	Files    blob.Store
	Pictures *picture.Decoder
	Changes  admin.Changes         // without a topic
	Values   func() *parameter.Set // contain the folders
	URL      string                // prefix of the path of a public file
}

// Upload is the input of Service.Upload.
type Upload struct {
	Content        []byte
	Name, FolderOf string
	Suffix         bool // append _<epoch ms> to the name
}

// Upload stores a picture and returns its address. Without Suffix it replaces a picture of the same name. Errors:
// INVALID_FIELD with every faulty field, OVERLOADED, UNAVAILABLE if the storage fails.
func (s *Service) Upload(ctx context.Context, by audit.By, in Upload) (address string, err error) {
	stem, ext := split(in.Name)
	var ps fault.Problems
	ps.Require(stem != "" && len(stem) <= maxNameChars && blob.ValidName(stem), "imageName",
		"must consist of 1 to 100 letters, digits, dots, dashes or underscores")
	ps.Require(slices.Contains(parameter.CDN.In(s.Values()).FolderTypes, in.FolderOf), "folderType",
		"is not a folder of the parameter CDN")
	format := picture.Sniff(in.Content)
	ps.Require(ext == "" || format == "" || slices.Contains(extensions[format], strings.ToLower(ext)), "imageName",
		"has the extension of another file type")
	if err := fault.All(ps); err != nil {
		return "", err
	}
	p, err := s.Pictures.Clean(ctx, "imageData", in.Content)
	if err != nil {
		return "", err
	}
	if ext == "" {
		ext = p.Format.Ext()[1:]
	}
	if in.Suffix {
		stem += "_" + strconv.FormatInt(s.Changes.Now().UnixMilli(), 10)
	}
	path := folder + "/" + in.FolderOf + "/" + stem + "." + ext
	if err := s.Files.Put(ctx, blob.PublicKey(path), p.Bytes); err != nil {
		return "", err
	}
	err = s.Changes.Do(ctx, by, ActionUpload, func(context.Context) (admin.Done, error) {
		return admin.Done{Target: path}, nil
	})
	return s.URL + "/" + path, err
}

// extensions are the allowed extensions of the name, by the format of the upload. The stored file is a PNG or a JPEG
// whatever its name says, and is served by its bytes.
var extensions = map[picture.Format][]string{picture.PNG: {"png"}, picture.JPEG: {"jpg", "jpeg"},
	picture.WebP: {"webp"}, picture.GIF: {"gif"}}

// split reduces a name to the characters that an address may contain, and separates its extension.
func split(name string) (stem, ext string) {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(r rune) rune {
		if r < 0x80 && blob.ValidName("a"+string(r)+"a") {
			return r
		}
		return -1
	}, name)
	name = strings.TrimRight(name, ".")
	if picture.Extension(name) != "" {
		dot := strings.LastIndexByte(name, '.')
		name, ext = name[:dot], name[dot+1:]
	}
	return strings.Trim(name, "."), ext
}
