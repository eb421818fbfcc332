// Replaces torch's libtorch_cuda.so when gnnbench_cuda is linked, so that a torch without CUDA
// suffices for the build. It is never installed: at run time torch has already loaded the real
// library.
extern "C" int aoti_torch_get_current_cuda_stream(int, void**) { return 1; }
