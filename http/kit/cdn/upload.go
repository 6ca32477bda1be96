package cdn

import (
	"context"

	"castellan/domain/kit/cdn"
	"castellan/domain/kit/fault"
	"castellan/http/rest"
)

// Group serves the upload, a part of section 4.10.
type Group struct{ Service *cdn.Service }

func (g Group) Endpoints() []rest.Endpoint {
	return rest.Section("4.10 Admin operations",
		rest.Post("/admin/cdn/upload", "Upload a public picture", rest.Tenant, g.upload, fault.InvalidField).
			Body(rest.FileBody).
			Try(`{"imageData":"`+rest.ExampleFile+`","imageName":"logo.png","folderType":"logo","useSuffix":false}`).
			Doc("uploadToCdn", "A PNG, JPEG, WebP or GIF picture. It is re-encoded as PNG or JPEG, without metadata and "+
				"animation. The content type follows the content, not the file name."),
	)
}

type uploadRequest struct {
	ImageData  rest.Base64 `json:"imageData"`
	ImageName  string      `json:"imageName" doc:"characters invalid in a URL path are removed" example:"logo.png"`
	FolderType string      `json:"folderType" doc:"a value of the parameter CDN" example:"logo"`
	UseSuffix  bool        `json:"useSuffix" default:"true" doc:"false: replaces the picture of this name"`
}

type cdnUpload struct {
	ImageURL *string `json:"imageUrl" example:"https://id.example.com/cdn/upload/logo/logo_1769853600000.png"`
}

func (g Group) upload(ctx context.Context, who rest.Caller, in uploadRequest) (rest.Data[cdnUpload], error) {
	address, err := g.Service.Upload(ctx, who.By(), cdn.Upload{Content: in.ImageData, Name: in.ImageName,
		FolderOf: in.FolderType, Suffix: in.UseSuffix})
	return rest.Data[cdnUpload]{Data: cdnUpload{&address}}, err
}
