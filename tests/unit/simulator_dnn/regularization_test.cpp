// Dropout: deterministic by seed, states in device memory, backward by the reserve space.
#include <algorithm>

#include "tests/unit/simulator_dnn/device.h"

namespace spillway::simulator::dnn {
namespace {

constexpr int kCount = 100000;
constexpr float kProbability = 0.3f;

class DropoutTest : public CudnnTest {
 protected:
  void SetUp() override {
    CudnnTest::SetUp();
    cudnnCreateDropoutDescriptor(&dropout_);
    ASSERT_EQ(cudnnDropoutGetStatesSize(handle_, &states_bytes_), CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cudnnDropoutGetReserveSpaceSize(desc_, &reserve_bytes_), CUDNN_STATUS_SUCCESS);
  }
  void TearDown() override {
    cudnnDestroyDropoutDescriptor(dropout_);
    CudnnTest::TearDown();
  }
  Floats Forward(const DeviceBytes& reserve) {
    const DeviceFloats x(Floats(kCount, 1.0f)), y(kCount);
    EXPECT_EQ(cudnnDropoutForward(handle_, dropout_, desc_, x.get(), desc_, y.get(), reserve.get(),
                                  reserve_bytes_),
              CUDNN_STATUS_SUCCESS);
    return y.Read();
  }
  cudnnDropoutDescriptor_t dropout_ = nullptr;
  size_t states_bytes_ = 0;
  size_t reserve_bytes_ = 0;
  TensorDesc desc_{{10, 10, 10, 100}};
};

TEST_F(DropoutTest, DropsItsShareAndScalesTheRest) {
  const DeviceBytes states(states_bytes_), reserve(reserve_bytes_);
  ASSERT_EQ(
      cudnnSetDropoutDescriptor(dropout_, handle_, kProbability, states.get(), states_bytes_, 42),
      CUDNN_STATUS_SUCCESS);

  const Floats y = Forward(reserve);

  const auto dropped = std::count(y.begin(), y.end(), 0.0f);
  EXPECT_NEAR(double(dropped) / kCount, 0.3, 0.01);
  for (const float value : y) ASSERT_TRUE(value == 0.0f || value == 1 / 0.7f);
}

TEST_F(DropoutTest, BackwardUsesTheSameMask) {
  const DeviceBytes states(states_bytes_), reserve(reserve_bytes_);
  cudnnSetDropoutDescriptor(dropout_, handle_, kProbability, states.get(), states_bytes_, 42);
  const Floats y = Forward(reserve);
  const DeviceFloats dy(Floats(kCount, 1.0f)), dx(kCount);

  ASSERT_EQ(cudnnDropoutBackward(handle_, dropout_, desc_, dy.get(), desc_, dx.get(), reserve.get(),
                                 reserve_bytes_),
            CUDNN_STATUS_SUCCESS);

  EXPECT_EQ(dx.Read(), y);
}

TEST_F(DropoutTest, SeedDecidesAndEveryCallAdvancesTheStates) {
  const DeviceBytes states(states_bytes_), reserve(reserve_bytes_);
  cudnnSetDropoutDescriptor(dropout_, handle_, kProbability, states.get(), states_bytes_, 42);
  const Floats first = Forward(reserve);
  const Floats second = Forward(reserve);
  cudnnSetDropoutDescriptor(dropout_, handle_, kProbability, states.get(), states_bytes_, 42);
  const Floats first_again = Forward(reserve);
  const std::vector<unsigned char> kept_states = states.Read();
  const Floats second_again = Forward(reserve);
  cudnnSetDropoutDescriptor(dropout_, handle_, kProbability, states.get(), states_bytes_, 43);
  const Floats other = Forward(reserve);

  EXPECT_NE(first, second);
  EXPECT_EQ(first, first_again);
  EXPECT_EQ(second, second_again);
  EXPECT_NE(first, other);

  // Restored states continue where they were saved.
  const DeviceBytes restored(kept_states);
  ASSERT_EQ(cudnnRestoreDropoutDescriptor(dropout_, handle_, kProbability, restored.get(),
                                          states_bytes_, 42),
            CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(Forward(reserve), second);
}

TEST_F(DropoutTest, SmallSpacesAreRefused) {
  const DeviceBytes states(states_bytes_), reserve(reserve_bytes_);
  EXPECT_EQ(cudnnSetDropoutDescriptor(dropout_, handle_, kProbability, states.get(),
                                      states_bytes_ - 1, 42),
            CUDNN_STATUS_BAD_PARAM);
  cudnnSetDropoutDescriptor(dropout_, handle_, kProbability, states.get(), states_bytes_, 42);
  const DeviceFloats x(kCount);
  EXPECT_EQ(cudnnDropoutForward(handle_, dropout_, desc_, x.get(), desc_, x.get(), reserve.get(),
                                reserve_bytes_ - 1),
            CUDNN_STATUS_BAD_PARAM);
}

}  // namespace
}  // namespace spillway::simulator::dnn
